"""The lessons on linear attention: a stream, its forms, costs, and configurations."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.viz_core.hub.families import HYBRIDS
from viz_core.lessons.linear_attention.layers import (
    CONFIGURATIONS,
    RULES,
    TOKENS,
    RuleName,
    all_forms,
    decay_by_age,
    draw_stream,
    head_cost,
    map_error,
    model_layers,
    returned,
)


@given(seed=st.integers(0, 999), rule=st.sampled_from(RULES), decay=st.floats(0.5, 1.0))
def test_every_form_of_every_stream_agrees(seed: int, rule: RuleName, decay: float) -> None:
    stream = draw_stream(seed)
    forms = all_forms(stream.operator(rule, decay), stream.values)
    assert max(forms.map_error, forms.chunk_error) < 1e-12
    assert forms.later_weight == 0
    assert all(stream.last_written(letter, t) is not None for t, letter in enumerate(stream.wanted))


@given(seed=st.integers(0, 999), decay=st.floats(0.5, 1.0))
def test_a_map_without_removal_misses_every_stream(seed: int, decay: float) -> None:
    stream = draw_stream(seed)
    forms = all_forms(stream.operator("delta", decay), stream.values, broken=True)
    assert forms.map_error > 0.01
    assert forms.chunk_error < 1e-12


@given(seed=st.integers(0, 999), time=st.integers(0, TOKENS - 1))
def test_the_delta_rule_returns_what_was_just_written(seed: int, time: int) -> None:
    stream, apart = draw_stream(seed), draw_stream(seed, orthogonal=True)
    letter = stream.written[time]
    state = returned(stream, "delta", time).state
    torch.testing.assert_close(stream.read(state, letter), stream.values[time])
    assert max(returned(apart, "delta", time).errors.values()) < 1e-12


def test_costs_by_hand() -> None:
    """Three tokens of width 2: queries meet 1, 2 and 3 keys, 6 in all, each with two products of 2."""
    cost = head_cost(3, 2)
    assert cost == (24, 24, 12, 4)


def test_retention_is_its_formula() -> None:
    assert map_error(4) < 1e-12
    assert decay_by_age(2, 3)[1].tolist() == [1, 63 / 64, (63 / 64) ** 2]


def test_layers_of_models_are_counted() -> None:
    rows = {row.model: row for row in model_layers()}
    assert rows.keys() == CONFIGURATIONS.keys()
    assert all(0 < row.linear <= row.layers for row in rows.values())
    assert rows["Mamba-2"].linear == rows["Mamba-2"].layers


def test_rules_of_models_are_those_that_their_layers_were_checked_against() -> None:
    """`tests/viz_core/hub/test_linear_attention.py` compares maps of tiny models of each family with their own rule."""
    names = {"delta": "gated delta rule", "decay": "lightning attention", "gated-decay": "state-space duality"}
    for module, _, rule in CONFIGURATIONS.values():
        family = "qwen3_5_text" if module == "qwen3_5" else module
        assert HYBRIDS[family][1] == names[rule]

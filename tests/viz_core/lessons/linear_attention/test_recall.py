"""Associative recall: sequences, layers by hand, reproducible training, and what it shows."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Generator

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
from viz_core.lessons.linear_attention.recall import (
    RECALL_RULES,
    RecallLayer,
    RecallPlan,
    RecallRule,
    RecallRun,
    draw_sequences,
)
from viz_core.runtime.hooks import interruptible


def generator(seed: int = 0) -> Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize("writes", [1, 2])
def test_sequences_ask_for_every_key_and_want_its_last_value(writes: int, held_out: bool) -> None:
    drawn = draw_sequences(generator(), 40, 6, writes, held_out)
    for keys, values, queried, answers in zip(*(each.tolist() for each in drawn), strict=True):
        assert len(set(queried)) == 6
        assert [dict(zip(keys, values, strict=True))[key] for key in queried] == answers
        assert len(keys) == len(values) == 6 * writes
        assert ((keys[0] + values[0]) % 8 == 0) == held_out
    assert 0 <= drawn.values.min() <= drawn.values.max() < 16


@pytest.mark.parametrize("rule", RECALL_RULES)
def test_a_layer_is_its_formula(rule: RecallRule) -> None:
    layer = RecallLayer(rule, 4, generator()).double()
    keys, values, queried, _ = draw_sequences(generator(1), 2, 3, 2, held_out=False)
    k, q, v = torch.nn.functional.normalize(layer.keys, dim=-1), queried[0], layer.values[values[0]]
    if rule == "softmax":
        scores = layer.log_scale.exp() * k[q] @ k[keys[0]].T + layer.log_slope.exp() * torch.arange(6)
        outputs = scores.softmax(dim=-1) @ v
    else:
        state, strength = torch.zeros(4, 4).double(), layer.strength if rule == "delta" else 1.0
        for key, value in zip(k[keys[0]], v, strict=True):
            state = state + strength * torch.outer(key, value - key @ state if rule == "delta" else value)
        outputs = k[q] @ state
    expected = torch.nn.functional.rms_norm(outputs, (4,)) @ layer.head
    torch.testing.assert_close(layer(keys, values, queried)[0], expected)


def test_a_run_depends_on_its_plan_alone_however_it_is_cut() -> None:
    plan = RecallPlan(steps=4, seed=2)
    whole, parts = RecallRun(plan), RecallRun(plan)
    losses = list(whole.advance())
    assert losses == [*parts.advance(1), *parts.advance(2), *parts.advance()]
    assert whole.finished
    assert list(whole.tests) == list(parts.tests) == [0, 1, 2, 3, 4]
    torch.testing.assert_close(whole.tests[4], parts.tests[4], rtol=0, atol=0)
    assert list(RecallRun(RecallPlan(steps=1, seed=3)).advance()) != losses[:1]


def test_the_learning_rate_falls_to_zero_in_a_line() -> None:
    run = RecallRun(RecallPlan(steps=4))
    rates = [run.optimizer.param_groups[0]["lr"] for _ in run.advance()]
    assert rates == pytest.approx([0.02, 0.015, 0.01, 0.005])


def test_an_update_can_be_interrupted() -> None:
    run = RecallRun(RecallPlan(steps=3))

    def check() -> None:
        if run.step == 1:
            raise TimeoutError

    with interruptible(check), pytest.raises(TimeoutError):
        list(run.advance())
    assert run.step == 1


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


def test_costs_by_hand() -> None:
    """Three tokens of width 2: queries meet 1, 2 and 3 keys, 6 in all, each with two products of 2."""
    cost = head_cost(3, 2)
    assert cost == (24, 24, 12, 4)

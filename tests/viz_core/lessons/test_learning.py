"""Recorded runs looked back at, recall by linear attention, and the book's exercises on pretraining."""

import contextlib
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Generator

from tests.viz_core.hub.families import HYBRIDS
from viz_core.attention import MultiHeadAttention
from viz_core.lessons.learning import head_measures, plan_for, right_by_length, shot_weights
from viz_core.lessons.linear_attention import (
    CONFIGURATIONS,
    RECALL_RULES,
    RULES,
    TOKENS,
    RecallLayer,
    RecallPlan,
    RecallRule,
    RecallRun,
    RuleName,
    all_forms,
    decay_by_age,
    draw_sequences,
    draw_stream,
    head_cost,
    map_error,
    model_layers,
    returned,
)
from viz_core.lessons.scoring_functions.score_contest import word_scores
from viz_core.runtime.hooks import interruptible
from viz_core.tasks import TASKS, Plan, Shape, TaskRun
from viz_core.tasks.film import Film
from viz_core.trace import record


def made_film(maps: np.ndarray, read: Sequence[str], held_out: Sequence[float], accuracy: Sequence[float] = ()) -> Film:
    """Shots every ten updates of these maps, (shots, layers, heads, n, n)."""
    updates = 10 * (len(maps) - 1)
    right = np.array(accuracy or [0.0] * updates, np.float32)
    return Film(
        Plan("repeat", Shape(num_layers=maps.shape[1], num_heads=maps.shape[2])),
        np.ones(updates, np.float32),
        right,
        tuple(range(0, updates + 1, 10)),
        np.array(held_out, np.float32),
        maps.astype(np.float16),
        np.ones(maps.shape[:-1], np.float16),
        np.zeros((0, 0), np.float16),
        tuple(read),
        ("",) * len(read),
    )


EVEN = np.tril(np.ones((3, 3))) / np.arange(1, 4)[:, None]
PREVIOUS = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0]])
MAPS = np.stack([np.stack([EVEN, EVEN]), np.stack([EVEN, PREVIOUS])])[:, None]  # 2 shots, 1 layer, 2 heads
TINY = Shape(num_layers=1, num_heads=1, num_hiddens=32)


def test_measures_of_each_shot_and_head() -> None:
    found = head_measures(made_film(MAPS, "aba", [0, 1]))
    np.testing.assert_allclose(found["previous"][:, 0], [[5 / 12, 5 / 12], [5 / 12, 1]], atol=1e-3)
    np.testing.assert_allclose(found["induction"][:, 0], [[1 / 3, 1 / 3], [1 / 3, 1]], atol=1e-3)
    np.testing.assert_allclose(found["diagonal"][1, 0], [11 / 18, 1 / 3], atol=1e-3)
    np.testing.assert_allclose(found["first"][1, 0], [11 / 18, 2 / 3], atol=1e-3)
    np.testing.assert_allclose(found["entropy"][1, 0], [(1 + np.log2(3)) / 3, 0], atol=1e-2)
    np.testing.assert_allclose(shot_weights(made_film(MAPS, "aba", [0, 1]), 0).sum(dim=-1), 1, atol=1e-6)


@pytest.mark.parametrize("read", ["abc", ["a", "?", "?"]])
def test_where_no_token_comes_twice_there_is_no_induction(read: str | list[str]) -> None:
    assert "induction" not in head_measures(made_film(MAPS, read, [0, 1]))


@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_a_plan_with_at_most_forty_shots(task: str) -> None:
    plan = plan_for(task, TINY, 400, 8, 3)
    assert (plan.task, plan.steps, plan.seed, plan.shape) == (task, 400, 3, TINY)
    assert plan.steps / plan.every <= 40
    run = TaskRun(Plan("look-up", TINY, longest=3))
    assert [length for length, _ in right_by_length(run, (0, 2, 26, 30))] == [2, 26], "lengths that the task has"


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


def test_a_run_depends_on_its_plan_alone_and_can_be_interrupted_between_updates() -> None:
    plan = RecallPlan(steps=2, seed=2)
    whole, parts, first = RecallRun(plan), RecallRun(plan), list[float]()

    def check() -> None:
        if parts.step == 1:
            raise TimeoutError

    with interruptible(check), contextlib.suppress(TimeoutError):
        for loss in parts.advance():
            first.append(loss)
    assert parts.step == len(first) == 1
    assert list(whole.advance()) == [*first, *parts.advance()]
    assert whole.finished
    assert list(whole.tests) == list(parts.tests) == [0, 1, 2]
    torch.testing.assert_close(whole.tests[2], parts.tests[2], rtol=0, atol=0)
    assert next(RecallRun(RecallPlan(steps=1, seed=3)).advance()) != first[0]


@settings(max_examples=25)
@given(seed=st.integers(0, 999), rule=st.sampled_from(RULES), decay=st.floats(0.5, 1.0))
def test_every_form_of_every_stream_agrees(seed: int, rule: RuleName, decay: float) -> None:
    stream = draw_stream(seed)
    forms = all_forms(stream.operator(rule, decay), stream.values)
    assert max(forms.map_error, forms.chunk_error) < 1e-12
    assert forms.later_weight == 0
    assert all(stream.last_written(letter, t) is not None for t, letter in enumerate(stream.wanted))


@settings(max_examples=25)
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


def test_rules_of_models_are_those_that_their_layers_were_checked_against() -> None:
    """`tests/viz_core/hub/test_linear_attention.py` compares maps of tiny models of each family with their own rule."""
    names = {"delta": "gated delta rule", "decay": "lightning attention", "gated-decay": "state-space duality"}
    for module, _, rule in CONFIGURATIONS.values():
        family = "qwen3_5_text" if module == "qwen3_5" else module
        assert HYBRIDS[family][1] == names[rule]
    assert all(0 < row.linear <= row.layers for row in model_layers())


def test_costs_by_hand() -> None:
    """Three tokens of width 2: queries meet 1, 2 and 3 keys, 6 in all, each with two products of 2."""
    cost = head_cost(3, 2)
    assert cost == (24, 24, 12, 4)


def test_two_words_become_the_number_the_layer_uses() -> None:
    torch.manual_seed(0)
    layer, X = MultiHeadAttention(12, 3).eval().requires_grad_(False), torch.randn(5, 12)
    made = word_scores(layer, X, head=1)
    with record() as trace:
        layer(X[None], X[None], X[None])
    weights = trace[trace.sites[0]].weights(head=1)[0]
    for query in range(5):
        assert made.weights(query) == pytest.approx(weights[query].numpy(), abs=1e-6)
        assert float(made.terms(query, 2).sum()) / 2 == pytest.approx(float(made.scores(query)[2]), abs=1e-6)

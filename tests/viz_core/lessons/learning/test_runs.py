"""A reader's own run, and measures of recorded ones."""

from collections.abc import Sequence

import numpy as np
import pytest

from viz_core.lessons.learning.runs import (
    head_measures,
    plan_for,
    right_by_length,
    shot_weights,
)
from viz_core.tasks import TASKS, Plan, Shape, TaskRun
from viz_core.tasks.film import Film


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


def test_later_shots_alone_are_the_end_of_all() -> None:
    film = made_film(MAPS, "aba", [0, 1])
    for name, measured in head_measures(film, since=1).items():
        np.testing.assert_array_equal(measured, head_measures(film)[name][1:])


@pytest.mark.parametrize("read", ["abc", ["a", "?", "?"]])
def test_where_no_token_comes_twice_there_is_no_induction(read: str | list[str]) -> None:
    assert "induction" not in head_measures(made_film(MAPS, read, [0, 1]))


def test_rows_sum_to_one_again_after_rounding() -> None:
    weights = shot_weights(made_film(MAPS, "aba", [0, 1]), 0)
    np.testing.assert_allclose(weights.sum(dim=-1), 1, atol=1e-6)


@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_a_plan_with_at_most_forty_shots(task: str) -> None:
    plan = plan_for(task, TINY, 400, 8, 3)
    assert (plan.task, plan.steps, plan.seed, plan.shape) == (task, 400, 3, TINY)
    assert plan.steps / plan.every <= 40


def test_a_wide_model_learns_in_smaller_steps() -> None:
    assert plan_for("copy", Shape(num_hiddens=256), 400, 8, 0).learning_rate == pytest.approx(5e-3 / 4)


def test_lengths_that_a_task_has_not_are_left_out() -> None:
    run = TaskRun(Plan("look-up", TINY, longest=3))
    assert [length for length, _ in right_by_length(run, (0, 2, 26, 30))] == [2, 26]

"""A reader's own run: its plan, and its accuracy by length."""

from __future__ import annotations

import pytest

from viz_core.lessons.learning.runs import plan_for, right_by_length
from viz_core.tasks import TASKS, Plan, Shape, TaskRun

TINY = Shape(num_layers=1, num_heads=1, num_hiddens=32)


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

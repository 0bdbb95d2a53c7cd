"""A reader's own run: its plan, and its accuracy by length."""

from collections.abc import Sequence
from dataclasses import replace

from viz_core.tasks import TASKS, Plan, Shape, TaskRun
from viz_core.tasks.film import FILMS, accuracy_by_length

SHOTS = 40
"""Snapshots of a run, at most."""
_SHORT = 3  # letters


def plan_for(task: str, shape: Shape, steps: int, longest: int, seed: int) -> Plan:
    """A plan that learns what can be learned in so few updates: the rate falls as the width grows past 64.

    Tasks that have so few examples that they can be learned by heart are trained as the recorded run of them is.
    """
    rate = 5e-3 * min(1.0, 64 / shape.num_hiddens)
    every = max(5, steps // SHOTS)
    if TASKS[task].finite:
        return replace(FILMS["modular-addition"], shape=shape, steps=steps, every=every, seed=seed)
    shortest = min(_SHORT, longest)
    return Plan(task, shape, steps, shortest, longest, learning_rate=rate, every=every, seed=seed)


def right_by_length(run: TaskRun, lengths: Sequence[int]) -> list[tuple[int, float]]:
    """Length and accuracy of what a run has learned so far, at those of the lengths that its task has."""
    there = [length for length in lengths if run.task.shortest <= length <= run.task.longest]
    return list(zip(there, accuracy_by_length(run, there), strict=True))

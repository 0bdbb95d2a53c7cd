"""A reader's own run: its plan, training a slice at a time, and what no training reaches."""

from collections.abc import Sequence
from dataclasses import replace

import torch

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


@torch.no_grad()
def blank_spread(positions: str, seed: int = 0) -> float:
    """The largest difference between the scores of two blanks of one row, in a fresh encoder that shall reverse it.

    Without positions X -> f(X) has f(PX) = P f(X) for any order P, so equal rows of X come out equal, whatever the
    weights: exactly 0, but for rounding.
    """
    shape = Shape(positions=positions, causal=False)
    run = TaskRun(Plan("reverse", shape, seed=seed))
    example, _ = run.probe()
    scores = run.model(run.model.reads(*example))[example.decided]
    return float((scores - scores[:1]).abs().max())

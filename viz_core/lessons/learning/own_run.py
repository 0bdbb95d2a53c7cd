"""A reader's own run: its plan, and training a slice at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from viz_core.tasks import TASKS, Plan, Shape, TaskRun
from viz_core.tasks.recorded import FILMS, accuracy_by_length

SHOTS = 40
"""Snapshots of a run, at most."""
SLICE = 0.4  # seconds of training before a page is drawn anew
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


class Training(Iterator[float]):
    """Train several runs side by side, a slice of seconds each time it is asked: the seconds that were spent so far.

    It ends when all are done or the seconds are spent. Unlike a generator it survives being cut short: whoever asks
    again goes on where it was.

    Args:
        most: seconds in all; any number unless given.
        clock: seconds, as they pass.
    """

    def __init__(
        self, runs: Sequence[TaskRun], most: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.runs = tuple(runs)
        self.most = most
        self.clock = clock
        self.spent = 0.0

    def __next__(self) -> float:
        """One slice, each run an update at a time."""
        unfinished = [run for run in self.runs if not run.finished]
        if not unfinished or (self.most is not None and self.spent >= self.most):
            raise StopIteration
        begun = self.clock()
        try:
            while unfinished and self.clock() - begun < SLICE:
                for run in unfinished:
                    next(run.advance(1))
                unfinished = [run for run in unfinished if not run.finished]
        finally:
            self.spent += self.clock() - begun
        return self.spent


def right_by_length(run: TaskRun, lengths: Sequence[int]) -> list[tuple[int, float]]:
    """Length and accuracy of what a run has learned so far, at those of the lengths that its task has."""
    there = [length for length in lengths if run.task.shortest <= length <= run.task.longest]
    return list(zip(there, accuracy_by_length(run, there), strict=True))

"""Training of several runs in slices, between which the page is drawn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from viz_core.tasks import TaskRun

SLICE = 0.4  # seconds of training before a page is drawn anew


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

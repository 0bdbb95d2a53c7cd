"""Live training of one or several models in slices, between which the page is drawn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from ui.blocks.stopwatch import StepwiseRun
from ui.compute.slots import is_hosted, time_limit

SLICE = 0.4  # seconds of training before a page is drawn anew


class TrainedRun(Protocol):
    """A training run that goes on by a number of updates."""

    @property
    def step(self) -> int:
        """Updates so far."""

    @property
    def finished(self) -> bool:
        """Whether all updates are done."""

    def advance(self, steps: int | None = None) -> Iterable[Any]:
        """Train for a number of updates."""


AnyTrained = TypeVar("AnyTrained", bound=TrainedRun)


class Training(Iterator[float]):
    """Train several runs side by side, a slice of seconds each time it is asked: the seconds that were spent so far.

    It ends when all are done or the seconds are spent. Unlike a generator it survives being cut short: whoever asks
    again goes on where it was.

    Args:
        most: seconds in all; any number unless given.
        clock: seconds, as they pass.
    """

    def __init__(
        self, runs: Sequence[TrainedRun], most: float | None = None, clock: Callable[[], float] = time.monotonic
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
                    for _ in run.advance(1):
                        pass
                unfinished = [run for run in unfinished if not run.finished]
        finally:
            self.spent += self.clock() - begun
        return self.spent


@dataclass(eq=False, kw_only=True)
class LiveTraining(StepwiseRun[float], Generic[AnyTrained]):
    """Runs that train in one visitor's session; they end as "spent" where a public server's time is over.

    Attributes:
        runs: by the names they have in legends.
    """

    runs: dict[str, AnyTrained]

    @property
    def done(self) -> int:
        """Updates of the run with the fewest."""
        return min(run.step for run in self.runs.values())

    @property
    def first(self) -> AnyTrained:
        """The run with the reader's main settings."""
        return next(iter(self.runs.values()))

    def _end(self, state: str) -> None:
        super()._end("spent" if state == "finished" and self.done < self.total else state)


def training(runs: Sequence[TrainedRun]) -> Training:
    """Return the training of these runs, as long as this server allows."""
    return Training(runs, time_limit() if is_hosted() else None)

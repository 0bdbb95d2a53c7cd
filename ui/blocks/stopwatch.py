"""Long work on a page, a stopwatch for example, one step at a time: the page stays responsive and a click stops it.

A fragment reruns and takes one measurement each time. Nothing runs between the reruns, so leaving the page or closing
the window stops the work. Live training of one or several models goes the same way, in slices.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import streamlit as st

from ui.chapter.chapter import Chapter
from ui.compute.slots import is_hosted, run_in_slot, time_limit

Measured = TypeVar("Measured")
AnyRun = TypeVar("AnyRun", bound="StepwiseRun[Any]")

_INTERVAL = 0.1  # seconds from one measurement to the next
_ABSENT_AFTER = 10.0  # seconds without a rerun after which the reader has left


@dataclass(eq=False)
class StepwiseRun(Generic[Measured]):
    """A series of measurements in progress or done, held in one visitor's session.

    Attributes:
        settings: the numbers that the reader chose; shown beside the results.
        total: largest number of measurements.
        kind: of work, for the metrics.
        state: "running", "finished", "stopped" by a click, or "left" when the reader left the page.
    """

    series: Iterator[Measured]
    settings: Mapping[str, int]
    total: int
    measurements: list[Measured] = field(default_factory=list)
    kind: str = "stopwatch"
    state: str = "running"
    touched: float = field(default_factory=time.monotonic)
    # Streamlit may start a rerun while another one still measures, and a generator takes one caller at a time.
    busy: threading.Lock = field(default_factory=threading.Lock)

    @property
    def done(self) -> int:
        """Number of measurements taken."""
        return len(self.measurements)

    def step(self) -> None:
        """Take one measurement, unless the run is over or another rerun is taking one."""
        if self.state != "running" or not self.busy.acquire(blocking=False):
            return
        try:
            measured = run_in_slot(lambda: next(self.series, None), self.kind)
            if measured is None:
                self._end("finished")
            else:
                self.measurements.append(measured)
        finally:
            self.touched = time.monotonic()
            self.busy.release()
        if self.done >= self.total:
            self._end("finished")

    def stop(self) -> None:
        """End the run at the reader's request."""
        self._end("stopped")

    def resume(self) -> None:
        """Continue a run that was stopped or left."""
        if self.state in ("stopped", "left"):
            self.state, self.touched = "running", time.monotonic()

    def notice_absence(self) -> None:
        """End the run if its reader left the page since the last measurement."""
        if time.monotonic() - self.touched > _ABSENT_AFTER:
            self._end("left")

    def _end(self, state: str) -> None:
        if self.state == "running":
            self.state = state


def stopwatch(
    chapter: Chapter,
    name: str,
    start: Callable[[], AnyRun],
    draw: Callable[[AnyRun], None],
    icon: str = ":material/timer:",
    resumable: bool = False,
) -> None:
    """Draw a button that starts a run, its progress, a button that stops it, and its results so far with `draw`.

    Words: `NAME.start`, `NAME.stop`, `NAME.none` before the first run, `NAME.progress` with {done} and {total},
    `NAME.STATE` with the run's settings for each final state, and `NAME.resume` if it is resumable.
    """
    key = chapter.controls.key(name)
    run: AnyRun | None = st.session_state.get(key)
    if run is not None:
        run.notice_absence()
    if st.button(
        chapter.words(f"{name}.start"),
        key=chapter.controls.key(f"{name}-start"),
        icon=icon,
        type="primary",
        disabled=run is not None and run.state == "running",
        on_click=lambda: st.session_state.update({key: start()}),
    ):
        run = st.session_state[key]
    if run is None:
        st.info(chapter.words(f"{name}.none"), icon=icon)
        return
    running = run.state == "running"
    step = partial(_step, chapter, name, run, running, resumable, draw)
    chapter.fragment(step, every=_INTERVAL if running else None)


def _step(
    chapter: Chapter, name: str, run: AnyRun, running: bool, resumable: bool, draw: Callable[[AnyRun], None]
) -> None:
    """Take a measurement and draw the progress. The end of a run reruns the page, which ends the fragment."""
    run.step()
    if running != (run.state == "running"):
        st.rerun()
    done = {"done": run.done, "total": run.total}
    with st.container(horizontal=True, vertical_alignment="center", key=f"{name}-state"):
        if run.state == "running":
            st.progress(min(1.0, run.done / run.total), chapter.words(f"{name}.progress", **done))
            st.button(
                chapter.words(f"{name}.stop"),
                key=chapter.controls.key(f"{name}-stop"),
                icon=":material/stop:",
                on_click=run.stop,
            )
        else:
            st.caption(chapter.words(f"{name}.{run.state}", **done, **run.settings))
            if resumable and run.state in ("stopped", "left"):
                st.button(
                    chapter.words(f"{name}.resume"),
                    key=chapter.controls.key(f"{name}-resume"),
                    icon=":material/play_arrow:",
                    on_click=run.resume,
                )
    draw(run)


SLICE = 0.4  # seconds of training before a page is drawn anew


@runtime_checkable  # the tests check types at run time
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

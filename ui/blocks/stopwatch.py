"""Long work on a page, a stopwatch for example, one step at a time: the page stays responsive and a click stops it.

A fragment reruns and takes one measurement each time. Nothing runs between the reruns, so leaving the page or closing
the window stops the work.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

import streamlit as st

from ui.chapter.chapter import Chapter
from ui.compute.slots import run_in_slot

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

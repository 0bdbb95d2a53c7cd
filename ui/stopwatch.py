"""A stopwatch on a page: it measures a little at a time, so the page stays alive and one click stops it.

A part of the page reruns by itself and takes one measurement each time. Nothing runs between the reruns, so a reader
who leaves the page or closes the window has stopped it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import streamlit as st

from ui.chapter import Chapter
from ui.compute import in_a_slot
from viz_core.runtime.stopwatch import Measurement

_EVERY = 0.1  # seconds from one measurement to the next
_AWAY = 10.0  # seconds without a rerun after which the reader is taken to have left


@dataclass(eq=False)
class Run:
    """A series of measurements under way or done, kept in one reader's session.

    Attributes:
        settings: what is measured, in the reader's numbers; shown beside the results.
        total: measurements there will be at most.
        state: "running", "finished", "stopped" by a click, or "left" with the page.
    """

    series: Iterator[Measurement]
    settings: dict[str, int]
    total: int
    measurements: list[Measurement] = field(default_factory=list)
    state: str = "running"
    touched: float = field(default_factory=time.monotonic)
    # Streamlit may start a new rerun while an old one still measures; a generator serves one at a time.
    busy: threading.Lock = field(default_factory=threading.Lock)

    def step(self) -> None:
        """Take one more measurement, unless this is over or another rerun is at it."""
        if self.state != "running" or not self.busy.acquire(blocking=False):
            return
        try:
            measured = in_a_slot(lambda: next(self.series, None), "stopwatch")
            if measured is None:
                self._end("finished")
            else:
                self.measurements.append(measured)
        finally:
            self.touched = time.monotonic()
            self.busy.release()
        if len(self.measurements) >= self.total:
            self._end("finished")

    def stop(self) -> None:
        self._end("stopped")

    def notice_absence(self) -> None:
        """End a run whose reader went elsewhere and has now come back."""
        if time.monotonic() - self.touched > _AWAY:
            self._end("left")

    def _end(self, state: str) -> None:
        if self.state == "running":
            self.state = state


def stopwatch(
    chapter: Chapter,
    name: str,
    begin: Callable[[], Run],
    draw: Callable[[Run], None],
) -> None:
    """A button that begins a run, its progress, a button that stops it, and what `draw` makes of it so far.

    Words: `NAME.start`, `NAME.stop`, `NAME.none` before the first run, `NAME.progress` with {done} and {total},
    and `NAME.STATE` with the run's settings for each state that is over.
    """
    key = chapter.controls.key(name)
    run: Run | None = st.session_state.get(key)
    if run is not None:
        run.notice_absence()
    if st.button(
        chapter.words(f"{name}.start"),
        key=chapter.controls.key(f"{name}-start"),
        icon=":material/timer:",
        type="primary",
        disabled=run is not None and run.state == "running",
        on_click=lambda: st.session_state.update({key: begin()}),
    ):
        run = st.session_state[key]
    if run is None:
        st.info(chapter.words(f"{name}.none"), icon=":material/timer:")
        return
    going = run.state == "running"
    chapter.alone(lambda: _follow(chapter, name, run, going, draw), every=_EVERY if going else None)


def _follow(chapter: Chapter, name: str, run: Run, going: bool, draw: Callable[[Run], None]) -> None:
    """One measurement, then the state of things. The end of a run redraws the page once, which ends the reruns."""
    run.step()
    if going and run.state != "running":
        st.rerun()
    done = {"done": len(run.measurements), "total": run.total}
    with st.container(horizontal=True, vertical_alignment="center", key=f"{name}-state"):
        if run.state == "running":
            st.progress(min(1.0, len(run.measurements) / run.total), chapter.words(f"{name}.progress", **done))
            st.button(
                chapter.words(f"{name}.stop"),
                key=chapter.controls.key(f"{name}-stop"),
                icon=":material/stop:",
                on_click=run.stop,
            )
        else:
            st.caption(chapter.words(f"{name}.{run.state}", **done, **run.settings))
    draw(run)

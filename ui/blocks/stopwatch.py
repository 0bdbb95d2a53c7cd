"""Long work on a page, a stopwatch say: it does a little at a time, so the page stays alive and one click stops it.

A part of the page reruns by itself and takes one measurement each time. Nothing runs between the reruns, so a reader
who leaves the page or closes the window has stopped it.
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
Followed = TypeVar("Followed", bound="Run[Any]")

_EVERY = 0.1  # seconds from one measurement to the next
_AWAY = 10.0  # seconds without a rerun after which the reader is taken to have left


@dataclass(eq=False)
class Run(Generic[Measured]):
    """A series of measurements under way or done, kept in one reader's session.

    Attributes:
        settings: what is measured, in the reader's numbers; shown beside the results.
        total: measurements there will be at most.
        kind: of work, for the metrics.
        state: "running", "finished", "stopped" by a click, or "left" with the page.
    """

    series: Iterator[Measured]
    settings: Mapping[str, int]
    total: int
    measurements: list[Measured] = field(default_factory=list)
    kind: str = "stopwatch"
    state: str = "running"
    touched: float = field(default_factory=time.monotonic)
    # Streamlit may start a new rerun while an old one still measures; a generator serves one at a time.
    busy: threading.Lock = field(default_factory=threading.Lock)

    @property
    def done(self) -> int:
        """How much of the total is done."""
        return len(self.measurements)

    def step(self) -> None:
        """Take one more measurement, unless this is over or another rerun is at it."""
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
        self._end("stopped")

    def go_on(self) -> None:
        """Take up again what was stopped, or left."""
        if self.state in ("stopped", "left"):
            self.state, self.touched = "running", time.monotonic()

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
    begin: Callable[[], Followed],
    draw: Callable[[Followed], None],
    icon: str = ":material/timer:",
    resumable: bool = False,
) -> None:
    """A button that begins a run, its progress, a button that stops it, and what `draw` makes of it so far.

    Words: `NAME.start`, `NAME.stop`, `NAME.none` before the first run, `NAME.progress` with {done} and {total},
    `NAME.STATE` with the run's settings for each state that is over, and `NAME.resume` where it is resumable.
    """
    key = chapter.controls.key(name)
    run: Followed | None = st.session_state.get(key)
    if run is not None:
        run.notice_absence()
    if st.button(
        chapter.words(f"{name}.start"),
        key=chapter.controls.key(f"{name}-start"),
        icon=icon,
        type="primary",
        disabled=run is not None and run.state == "running",
        on_click=lambda: st.session_state.update({key: begin()}),
    ):
        run = st.session_state[key]
    if run is None:
        st.info(chapter.words(f"{name}.none"), icon=icon)
        return
    going = run.state == "running"
    follow = partial(_follow, chapter, name, run, going, resumable, draw)
    chapter.fragment(follow, every=_EVERY if going else None)


def _follow(
    chapter: Chapter, name: str, run: Followed, going: bool, resumable: bool, draw: Callable[[Followed], None]
) -> None:
    """One measurement, then the state of things. The end of a run redraws the page once, which ends the reruns."""
    run.step()
    if going != (run.state == "running"):
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
                    on_click=run.go_on,
                )
    draw(run)

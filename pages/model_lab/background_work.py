"""Slow work in a thread, with progress; a rerun of the page does not cancel it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TypeVar

import streamlit as st

from ui.streamlit_internals.script_run import joining_run

Result = TypeVar("Result")
_BLINK = 0.4  # seconds; shorter work shows nothing
_STEP = 0.25


@dataclass
class Progress:
    """Bytes downloaded and their total; written by downloading threads, read by the page."""

    done: int = 0
    total: int = 0

    def __call__(self, done: int, total: int) -> None:
        self.done, self.total = done, total

    @property
    def share(self) -> float:
        return min(1.0, self.done / self.total) if self.total else 0.0


def with_progress(label: str, work: Callable[[], Result], progress: Progress) -> Result:
    """Return what `work` returns, or raise what it raises; its thread continues when the page reruns."""
    place = st.empty()
    runner = ThreadPoolExecutor(1, initializer=joining_run())
    future = runner.submit(work)
    runner.shutdown(wait=False)
    wait([future], timeout=_BLINK)
    while not future.done():  # each word to the page gives Streamlit the chance to stop this run
        if progress.total:
            place.progress(progress.share, text=label)
        else:
            place.status(label)
        wait([future], timeout=_STEP)
    place.empty()
    return future.result()

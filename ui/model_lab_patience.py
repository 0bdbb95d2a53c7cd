"""Slow work that shows how far it is, and that a click elsewhere on the page does not throw away."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TypeVar

import streamlit as st
from streamlit.runtime.scriptrunner import add_script_run_ctx, get_script_run_ctx

Result = TypeVar("Result")
_BLINK = 0.4  # seconds; shorter work shows nothing
_STEP = 0.25


@dataclass
class Arrived:
    """Bytes that have come and bytes there are; written by downloading threads, read by the page."""

    done: int = 0
    total: int = 0

    def __call__(self, done: int, total: int) -> None:
        self.done, self.total = done, total

    @property
    def share(self) -> float:
        return min(1.0, self.done / self.total) if self.total else 0.0


def patiently(label: str, work: Callable[[], Result], arrived: Arrived | None = None) -> Result:
    """What `work` returns or raises; it runs in a thread of its own, and goes on if the reader moves on meanwhile."""
    place = st.empty()
    context = get_script_run_ctx()
    runner = ThreadPoolExecutor(1, initializer=lambda: add_script_run_ctx(threading.current_thread(), context))
    future = runner.submit(work)
    runner.shutdown(wait=False)
    wait([future], timeout=_BLINK)
    if not future.done():
        with place.status(label):
            bar = st.progress(0.0) if arrived is not None else None
            while not future.done():  # each look gives Streamlit the chance to stop this run
                wait([future], timeout=_STEP)
                if bar is not None and arrived is not None and arrived.total:
                    bar.progress(arrived.share)
        place.empty()
    return future.result()

"""Keeping Python's garbage collector out of the way of whoever moves a slider."""

from __future__ import annotations

import gc
import sys

_seen = 0  # modules when the collector was last told


def spare_modules() -> None:
    """Put what has been imported out of the collector's sight; costs nothing where nothing new was.

    Streamlit collects after every run of a page. Without this, that walks through every object of every library, a
    fifth of a second in which the page's last messages wait. What a run itself leaves behind is still collected, and so
    is what importing left behind: frozen, it would stay for good.
    """
    global _seen
    if len(sys.modules) != _seen:
        _seen = len(sys.modules)
        gc.collect()
        gc.freeze()

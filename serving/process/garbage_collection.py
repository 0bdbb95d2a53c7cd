"""Keeping Python's garbage collector out of the way of whoever moves a slider.

Streamlit would collect after every run of a page (`runner.postScriptGC`, which .streamlit/config.toml turns off). That
walks through every object of every window and every library while nobody else's page can run: with fifty visitors it
took six tenths of the server's time. What runs leave behind is still collected, now and then.
"""

from __future__ import annotations

import gc
import sys
import time

_APART = 10.0  # seconds
_seen = 0  # modules when the collector was last told
_collected = 0.0  # when it last walked, by the monotonic clock


def spare_modules() -> None:
    """Put what has been imported out of the collector's sight; costs nothing where nothing new was.

    What a run itself leaves behind is still collected, and so is what importing left behind: frozen, it would stay for
    good.
    """
    global _seen
    if len(sys.modules) != _seen:
        _seen = len(sys.modules)
        gc.collect()
        gc.freeze()


def collect_at_times() -> None:
    """Collect what the runs of pages left behind, unless that was done a moment ago.

    Python collects by itself too, but counts objects and not what they hold: a map of a model is one object.
    """
    global _collected
    now = time.monotonic()
    if now - _collected >= _APART:
        _collected = now
        gc.collect()

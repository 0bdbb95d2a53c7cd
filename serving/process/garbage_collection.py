"""Garbage collection at moments when it does not slow a page down.

Streamlit would collect after every run of a page (`runner.postScriptGC`, which .streamlit/config.toml turns off). That
walks through every object of every session and library and stops all other pages: with fifty visitors it took 60% of
the server's time.
"""

from __future__ import annotations

import gc
import sys
import time

_INTERVAL = 10.0  # seconds between two collections
_num_modules = 0  # at the last freeze
_collected = 0.0  # monotonic time of the last collection


def freeze_imported_modules() -> None:
    """Exclude imported modules from garbage collection; free where nothing new was imported.

    Garbage is collected before the freeze, which would keep it for good.
    """
    global _num_modules
    if len(sys.modules) != _num_modules:
        _num_modules = len(sys.modules)
        gc.collect()
        gc.freeze()


def collect_periodically() -> None:
    """Collect garbage, at most once in 10 seconds.

    Python's own collections count objects and not their size, and a large attention map is one object.
    """
    global _collected
    now = time.monotonic()
    if now - _collected >= _INTERVAL:
        _collected = now
        gc.collect()

"""Work beside the pages: once the first page is sent, and garbage collection when it does not slow a page down.

Streamlit would collect after every run of a page (`runner.postScriptGC`, which .streamlit/config.toml turns off). That
walks through every object of every session and library and stops all other pages: with fifty visitors it took 60% of
the server's time.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from serving.logs import log, where

_TIMEOUT = 5.0  # seconds
_started = threading.Event()


def start_background_work(after: float = 0.0) -> None:
    """Let the background work start in `after` seconds: a visitor has come, or is served."""
    if not _started.is_set():
        timer = threading.Timer(after, _started.set)
        timer.daemon = True
        timer.start()


def background_lifespan(
    work: Callable[[], object], timeout: float = _TIMEOUT
) -> Callable[[Any], AbstractAsyncContextManager[None]]:
    """Return an ASGI lifespan that runs `work` in a thread; its errors are only logged.

    The work starts with `start_background_work`, or after `timeout` seconds: earlier it would slow the first page down.
    """

    def run() -> None:
        _started.wait(timeout)
        try:
            work()
        except Exception as error:
            log.warning("background work failed", error=where(error))

    @asynccontextmanager
    async def lifespan(_app: Any) -> AsyncIterator[None]:
        threading.Thread(target=run, name="background", daemon=True).start()
        yield

    return lifespan


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

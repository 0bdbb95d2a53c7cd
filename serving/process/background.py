"""Work beside the pages: once the first page is sent, and garbage collection only as memory grows.

Streamlit would collect after every run of a page (`runner.postScriptGC`, which .streamlit/config.toml turns off). That
walks through every object of every session and library and stops all other pages: with fifty visitors it took 60% of
the server's time.
"""

import gc
import resource
import sys
import threading
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


_GROWTH = 128 * 2**20  # bytes that a process may grow between two collections
_THRESHOLDS = (50_000, 10, 50)  # objects, young collections, middle ones: Python's own would walk through every run
_num_modules = 0  # at the last freeze
_size = 0  # of this process after the last collection, in bytes


def freeze_imported_modules() -> None:
    """Exclude imported modules from garbage collection; free where nothing new was imported.

    Garbage is collected before the freeze, which would keep it for good.
    """
    global _num_modules, _size
    if len(sys.modules) != _num_modules:
        _num_modules = len(sys.modules)
        gc.collect()
        gc.freeze()
        gc.set_threshold(*_THRESHOLDS)
        _size = _resident_bytes()


def collect_by_allocation() -> None:
    """Collect garbage where the process has grown by 128 MB since the last time.

    Python's own collections count objects and not their size, and a large attention map is one object.
    """
    global _size
    size = _resident_bytes()
    if size < _size + _GROWTH:
        _size = min(_size, size)
        return
    gc.collect()
    _size = _resident_bytes()


def _resident_bytes() -> int:
    """Return the memory of this process; at its largest, where the system has no /proc."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

"""Background work of a server that starts once its first visitor is served."""

from __future__ import annotations

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

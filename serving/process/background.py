"""Work that begins once a server's first visitor is served, and keeps nobody waiting."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from serving.logs import log, where

_PATIENCE = 5.0  # seconds
_begun = threading.Event()


def begin(after: float = 0.0) -> None:
    """Somebody will need what is to be prepared; or is served, and in so many seconds has got what the page names."""
    if not _begun.is_set():
        timer = threading.Timer(after, _begun.set)
        timer.daemon = True
        timer.start()


def in_background(
    work: Callable[[], object], patience: float = _PATIENCE
) -> Callable[[Any], AbstractAsyncContextManager[None]]:
    """A server's lifespan with this work in a thread; what it raises is told in the log alone.

    It begins when `begin` is called, or after so many seconds: earlier it would take the processor from the first page.
    """

    def run() -> None:
        _begun.wait(patience)
        try:
            work()
        except Exception as error:
            log.warning("what was begun in the background failed", {"error": where(error)})

    @asynccontextmanager
    async def lifespan(_app: Any) -> AsyncIterator[None]:
        threading.Thread(target=run, name="background", daemon=True).start()
        yield

    return lifespan

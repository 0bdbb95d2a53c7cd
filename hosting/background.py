"""Work that begins once a server's port is open, and keeps nobody waiting."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from hosting.logs import log, where


def in_background(work: Callable[[], object]) -> Callable[[Any], AbstractAsyncContextManager[None]]:
    """A server's lifespan that begins with this work in a thread; what it raises is told in the log alone."""

    def run() -> None:
        try:
            work()
        except Exception as error:
            log.warning("what was begun in the background failed", {"error": where(error)})

    @asynccontextmanager
    async def lifespan(_app: Any) -> AsyncIterator[None]:
        threading.Thread(target=run, name="background", daemon=True).start()
        yield

    return lifespan

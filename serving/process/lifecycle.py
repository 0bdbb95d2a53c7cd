"""What runs a server: is it alive, is it ready, and how it stops without cutting anyone short."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from serving.compute.slots import Slots
from serving.logs import log, reformat, where
from serving.metrics import Metrics

_LOOK = 0.1  # seconds between two looks at what is still at work
_TIDY = 30.0  # seconds between two times of tidying up
_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 300.0  # seconds before models that could not be loaded are tried again


class Operations:
    """One server: its models load in the background, and it stops when its work is done.

    Args:
        warm: loads the models; whatever it raises leaves the server unready, and it is called again after a pause.
        slots: those of this process.
        metrics: those of this process.
        stop_seconds: how long visitors may go on after the server was told to stop.
        first_pause: seconds before what could not be loaded is tried again; then twice as long each time.
        metrics_address: where the metrics are told, as HOST:PORT; nowhere where empty.
        tidy: called every so many seconds.
        end: called last of all, whatever is still at work.
    """

    def __init__(
        self,
        warm: Callable[[], object],
        slots: Callable[[], Slots],
        metrics: Callable[[], Metrics],
        stop_seconds: float,
        first_pause: float = _FIRST_PAUSE,
        metrics_address: str = "",
        tidy: Callable[[], object] = lambda: None,
        end: Callable[[], object] = lambda: None,
    ) -> None:
        self._warm, self._slots, self._metrics = warm, slots, metrics
        self._stop_seconds, self._first_pause = stop_seconds, first_pause
        self._metrics_address, self._tidy, self._end = metrics_address, tidy, end
        self._state = {"ready": False, "stopping": False}

    @property
    def ready(self) -> bool:
        return self._state["ready"] and not self._state["stopping"]

    def routes(self) -> list[Route]:
        """`/healthz`: the process answers. `/readyz`: models are loaded, and it does not stop."""

        def health(_request: Request) -> Response:
            return PlainTextResponse("ok")

        def readiness(_request: Request) -> Response:
            return PlainTextResponse("ready", 200) if self.ready else PlainTextResponse("not ready", 503)

        return [Route("/healthz", health), Route("/readyz", readiness)]

    @asynccontextmanager
    async def lifespan(self, _app: Any) -> AsyncIterator[None]:
        """From start to stop."""
        reformat()
        self._metrics().watch_ready(lambda: self.ready)
        tasks = [asyncio.create_task(self._load()), asyncio.create_task(self._tidy_up())]
        self._stop_gently()
        try:
            with self._metrics().served(self._metrics_address):
                yield
        finally:
            self._state["stopping"] = True
            for task in tasks:
                task.cancel()
            finished = await to_thread.run_sync(self._slots().close, self._stop_seconds)
            self._end()
            log.info("stopped", {"finished": finished})

    async def _load(self) -> None:
        begun, pause = time.monotonic(), self._first_pause
        while True:
            try:
                await to_thread.run_sync(self._warm)
                break
            except Exception as error:
                log.error("the models could not be loaded", {"error": where(error)})
            await asyncio.sleep(pause)  # a pool of machines may come up later than its front ends
            pause = min(2 * pause, _LONGEST_PAUSE)
        self._state["ready"] = True
        log.info("ready", {"seconds": round(time.monotonic() - begun, 1)})

    async def _tidy_up(self) -> None:
        while True:
            await asyncio.sleep(_TIDY)
            self._tidy()

    def _stop_gently(self) -> None:
        """The first SIGTERM ends readiness: a balancer sends nobody more. The server stops when all are served."""
        loop = asyncio.get_running_loop()
        stop = signal.getsignal(signal.SIGTERM)
        if not callable(stop):
            return

        def told(number: int, frame: Any) -> None:
            if self._state["stopping"]:
                stop(number, frame)
                return
            self._state["stopping"] = True
            asyncio.run_coroutine_threadsafe(drain(number), loop)

        async def drain(number: int) -> None:
            running, waiting = self._slots().count()
            log.info("stopping", {"running": running, "waiting": waiting})
            end = time.monotonic() + self._stop_seconds
            while self._slots().count() != (0, 0) and time.monotonic() < end:
                await asyncio.sleep(_LOOK)
            stop(number, None)

        signal.signal(signal.SIGTERM, told)

"""A server's life cycle: health checks, how late its event loop is, loading of models, and a graceful stop."""

import asyncio
import signal
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from serving.compute.slots import Slots
from serving.logs import log, reset_formatters, where
from serving.metrics import Metrics, operations_served

_INTERVAL = 0.1  # seconds between two beats
_WINDOW = 60.0  # seconds for which the longest delay is reported


class LoopMonitor:
    """Measures the delay of the event loop; every thread may read it, also while the loop is busy.

    Args:
        clock: returns seconds since any moment.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._beat = clock()
        self._lags: deque[tuple[float, float]] = deque()  # when, and seconds; the longer ones first

    async def run(self) -> None:
        """Measure until cancelled."""
        while True:
            self.beat()
            await asyncio.sleep(_INTERVAL)

    def beat(self) -> None:
        """Take note that the loop has come round."""
        now = self._clock()
        lag = self.busy_seconds()
        while self._lags and self._lags[-1][1] <= lag:
            self._lags.pop()
        self._lags.append((now, lag))
        while now - self._lags[0][0] > _WINDOW:
            self._lags.popleft()
        self._beat = now

    def busy_seconds(self) -> float:
        """Return for how long the loop has been busy with one thing, as far as it is late."""
        return max(0.0, self._clock() - self._beat - _INTERVAL)

    def longest_lag(self) -> float:
        """Return the longest delay of the last minute in seconds, one that still lasts included."""
        return max([self.busy_seconds(), *(lag for _, lag in tuple(self._lags)[:1])])


_POLL = 0.1  # seconds between two checks of the slots while the server stops
_SENDING = 1.0  # seconds in which pages draw and send what was computed last
_CLEANUP = 30.0  # seconds between two clean-ups
_STUCK = 30.0  # seconds for which the event loop may be busy with one thing
_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 300.0  # seconds before loading is tried again


class ServerLifecycle:
    """Loads the models in the background, reports readiness, and stops when running work is done.

    Args:
        warm: loads the models; after an error the server stays unready, and `warm` is called again after a pause.
        slots: returns the slots of this process.
        metrics: returns the metrics of this process.
        stop_seconds: how long running work may go on after a request to stop.
        first_pause: seconds before the first retry of `warm`; doubled each time.
        metrics_address: HOST:PORT at which metrics, health and readiness are served by threads of their own; "" for
            nowhere.
        clean_up: called every 30 seconds.
        end: called last, also while work is still running.
        announce_stop: tells those who have a page open, on the event loop.
    """

    def __init__(
        self,
        warm: Callable[[], object],
        slots: Callable[[], Slots],
        metrics: Callable[[], Metrics],
        stop_seconds: float,
        first_pause: float = _FIRST_PAUSE,
        metrics_address: str = "",
        clean_up: Callable[[], object] = lambda: None,
        end: Callable[[], object] = lambda: None,
        announce_stop: Callable[[], object] = lambda: None,
    ) -> None:
        self._warm, self._slots, self._metrics = warm, slots, metrics
        self._stop_seconds, self._first_pause = stop_seconds, first_pause
        self._metrics_address, self._clean_up, self._end = metrics_address, clean_up, end
        self._announce_stop = announce_stop
        self._monitor = LoopMonitor()
        self._state = {"ready": False, "stopping": False}

    @property
    def ready(self) -> bool:
        return self._state["ready"] and not self._state["stopping"]

    def routes(self) -> list[Route]:
        """Return `/healthz` (the process answers) and `/readyz` (models are loaded and the server is not stopping)."""

        def route(check: Callable[[], tuple[bool, str]]) -> Callable[[Request], Awaitable[Response]]:
            async def answer(_request: Request) -> Response:
                well, line = check()
                return PlainTextResponse(line, 200 if well else 503)

            return answer

        return [Route(path, route(check)) for path, check in self._checks().items()]

    def _checks(self) -> dict[str, Callable[[], tuple[bool, str]]]:
        def health() -> tuple[bool, str]:
            stuck = self._monitor.busy_seconds() > _STUCK  # seen by the threads of the metrics address alone
            return not stuck, "the event loop does not answer" if stuck else "ok"

        def readiness() -> tuple[bool, str]:
            return self.ready, "ready" if self.ready else "not ready"

        return {"/healthz": health, "/readyz": readiness}

    @asynccontextmanager
    async def lifespan(self, _app: Any) -> AsyncIterator[None]:
        """Run the server from start to stop, as an ASGI lifespan."""
        reset_formatters()
        metrics = self._metrics()
        metrics.watch_ready(lambda: self.ready)
        metrics.watch_loop(self._monitor.longest_lag)
        work = (self._monitor.run(), self._load(), self._clean_up_regularly())
        tasks = [asyncio.create_task(one) for one in work]
        self._stop_gracefully()
        try:
            with operations_served(self._metrics_address, metrics.registry, self._checks()):
                yield
        finally:
            self._state["stopping"] = True
            for task in tasks:
                task.cancel()
            finished = await to_thread.run_sync(self._slots().close, self._stop_seconds)
            self._end()
            log.info("stopped", finished=finished)

    async def _load(self) -> None:
        start, pause = time.monotonic(), self._first_pause
        while True:
            try:
                await to_thread.run_sync(self._warm)
                break
            except Exception as error:
                log.error("the models could not be loaded", error=where(error))
            await asyncio.sleep(pause)  # a pool of machines may come up later than its front ends
            pause = min(2 * pause, _LONGEST_PAUSE)
        self._state["ready"] = True
        log.info("ready", seconds=round(time.monotonic() - start, 1))

    async def _clean_up_regularly(self) -> None:
        while True:
            await asyncio.sleep(_CLEANUP)
            self._clean_up()

    def _stop_gracefully(self) -> None:
        """Let the first SIGTERM end readiness, and pass it on once running work is done. A second one stops at once."""
        loop = asyncio.get_running_loop()
        stop = signal.getsignal(signal.SIGTERM)
        if not callable(stop):
            return

        def on_signal(number: int, frame: Any) -> None:
            if self._state["stopping"]:
                stop(number, frame)
                return
            self._state["stopping"] = True
            asyncio.run_coroutine_threadsafe(drain(number), loop)

        async def drain(number: int) -> None:
            running, waiting = self._slots().count()
            log.info("stopping", running=running, waiting=waiting)
            self._announce_stop()
            worked = time.monotonic() if running or waiting else 0.0
            end = time.monotonic() + self._stop_seconds
            while (now := time.monotonic()) < min(end, worked + _SENDING):
                await asyncio.sleep(_POLL)
                if self._slots().count() != (0, 0):
                    worked = now
            stop(number, None)

        signal.signal(signal.SIGTERM, on_signal)

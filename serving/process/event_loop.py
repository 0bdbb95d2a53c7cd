"""How long the event loop, which serves all visitors, keeps them waiting."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

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

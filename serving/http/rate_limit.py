"""Rate limits."""

from __future__ import annotations

import time
from collections.abc import Callable


class TokenBucket:
    """A bucket that refills at a steady rate (ITU-T I.371).

    Args:
        rate: tokens added each second.
        burst: initial and maximum number of tokens.
        clock: returns seconds since any moment.
    """

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._tokens, self._updated = burst, clock()

    def spend(self, cost: float = 1.0) -> float:
        """Take tokens, on credit where there are too few; return the seconds until the debt is paid back."""
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._updated) * self._rate) - cost
        self._updated = now
        return max(0.0, -self._tokens / self._rate)

"""How much of something one may have in a time: a bucket that fills at a steady rate."""

from __future__ import annotations

import time
from collections.abc import Callable


class Allowance:
    """So much a second, and a burst at once (a token bucket, ITU-T I.371).

    Args:
        rate: what comes back each second.
        burst: what there is at first, and at most.
        clock: seconds, from anywhere.
    """

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._left, self._seen = burst, clock()

    def spend(self, cost: float = 1.0) -> float:
        """Take so much, on credit where there is too little; the seconds until that is paid back."""
        now = self._clock()
        self._left = min(self._burst, self._left + (now - self._seen) * self._rate) - cost
        self._seen = now
        return max(0.0, -self._left / self._rate)

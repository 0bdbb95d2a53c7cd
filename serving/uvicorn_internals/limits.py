"""Limits of this process for every connection, and the timeout for clients that read too slowly."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import lru_cache
from typing import ClassVar

from serving.http.rate_limit import TokenBucket

_LEAST = 1024  # bytes a second that a client must read
_BURST = 2.0  # seconds' worth of frames that may come at once


class Limits:
    """Limits of this process, for every connection.

    Attributes:
        head_seconds: from a connection to a whole request, and from a handshake to its answer.
        body_seconds: for what is sent with a request.
        slow_seconds: for which a response may go out at less than a kilobyte a second.
        message_bytes: of a message of a web socket.
        frames: per second, read from one web socket; 4 KB cost as much as a frame.
        frames_an_address: per second, read from all web sockets of one address.
        flood_seconds: for which a web socket may send more than is read.
        count: called with the reason for which a connection was slowed down or ended, for the metrics.
    """

    head_seconds: ClassVar[float] = 15.0
    body_seconds: ClassVar[float] = 180.0
    slow_seconds: ClassVar[float] = 30.0
    message_bytes: ClassVar[int] = 2**20
    frames: ClassVar[float] = 200.0
    frames_an_address: ClassVar[float] = 4000.0
    flood_seconds: ClassVar[float] = 10.0
    count: ClassVar[Callable[[str], object]] = lambda _why: None


def frame_buckets(address: str) -> tuple[TokenBucket, TokenBucket]:
    """Return the rates of a new web socket: its own, and the one that all of its address share."""
    own = TokenBucket(Limits.frames, _BURST * Limits.frames)
    return own, _shared_bucket(address, Limits.frames_an_address)


@lru_cache(maxsize=256)  # addresses whose rate is tracked, those used last
def _shared_bucket(_address: str, rate: float) -> TokenBucket:
    return TokenBucket(rate, _BURST * rate)


class SlowReaderTimeout:
    """For both protocols: aborts a connection whose client reads too slowly."""

    transport: asyncio.Transport
    _left = 0  # bytes that were not sent at the last check
    _slow: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        super().pause_writing()  # type: ignore[misc]
        self._left = self.transport.get_write_buffer_size()
        self._slow = asyncio.get_running_loop().call_later(Limits.slow_seconds, self._check_reader)

    def resume_writing(self) -> None:
        if self._slow is not None:
            self._slow.cancel()
        super().resume_writing()  # type: ignore[misc]

    def _check_reader(self) -> None:
        left = self.transport.get_write_buffer_size()
        if left > self._left - _LEAST * Limits.slow_seconds:
            Limits.count("unread")
            self.transport.abort()
        else:
            self._left = left
            self._slow = asyncio.get_running_loop().call_later(Limits.slow_seconds, self._check_reader)

    def connection_lost(self, error: Exception | None) -> None:
        if self._slow is not None:
            self._slow.cancel()
        super().connection_lost(error)  # type: ignore[misc]

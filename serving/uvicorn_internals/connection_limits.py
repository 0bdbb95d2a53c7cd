"""Timeouts for connections: half a request, half a message, a response that the client does not read.

Uvicorn waits for ever in each of these cases. It finds its protocols by name: `install_limits` replaces them by these.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar

import uvicorn.config
from uvicorn.protocols.http.auto import AutoHTTPProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

_INTERVAL = 5.0  # seconds between two checks
_LEAST = 1024  # bytes a second that a client must read


class Limits:
    """Limits of this process, for every connection.

    Attributes:
        head_seconds: from a connection to a whole request.
        body_seconds: for what is sent with a request.
        slow_seconds: for which a response may go out at less than a kilobyte a second.
        message_bytes: of a message of a web socket.
        count: called with the reason for which a connection was ended, for the metrics.
    """

    head_seconds: ClassVar[float] = 15.0
    body_seconds: ClassVar[float] = 180.0
    slow_seconds: ClassVar[float] = 30.0
    message_bytes: ClassVar[int] = 2**20
    count: ClassVar[Callable[[str], object]] = lambda _why: None


class _SlowReaderTimeout:
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


class HttpWithTimeouts(_SlowReaderTimeout, AutoHTTPProtocol):  # type: ignore[misc,valid-type]
    """Aborts a connection that sends no whole request in time."""

    _request: Any = None  # at the last check
    _waited = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._check_later()

    def _check_later(self) -> None:
        asyncio.get_running_loop().call_later(min(_INTERVAL, Limits.head_seconds), self._check_request)

    def _check_request(self) -> None:
        if self.transport.is_closing() or self.transport.get_protocol() is not self:
            return
        request = self.cycle
        between = request is None or request.response_complete
        waiting = between or request.more_body
        if request is not self._request or not waiting:
            self._request, self._waited = request, 0.0
        else:
            self._waited += min(_INTERVAL, Limits.head_seconds)
        if self._waited >= (Limits.head_seconds if between else Limits.body_seconds):
            Limits.count("unfinished")
            self.transport.abort()
        else:
            self._check_later()


class SocketWithLimits(_SlowReaderTimeout, WebSocketsSansIOProtocol):
    """Refuses messages larger than any page sends."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn.max_message_size = Limits.message_bytes


def install_limits(message_bytes: int, slow_seconds: float, count: Callable[[str], object]) -> None:
    """Have uvicorn use these protocols, and as many connections as the system allows."""
    Limits.message_bytes, Limits.slow_seconds, Limits.count = message_bytes, slow_seconds, count
    with suppress(ImportError, ValueError, OSError):  # a system without such limits
        import resource

        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # four for each session
    uvicorn.config.HTTP_PROTOCOLS["auto"] = f"{__name__}:{HttpWithTimeouts.__name__}"
    uvicorn.config.WS_PROTOCOLS["websockets-sansio"] = f"{__name__}:{SocketWithLimits.__name__}"

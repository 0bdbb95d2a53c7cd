"""Timeouts for connections: half a request, half a message, a response that the client does not read.

Uvicorn waits for ever in each of these cases. It finds its protocols by name: `install_limits` replaces them by these.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import uvicorn.config
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from serving.http.addresses import unmapped
from serving.uvicorn_internals.limits import Limits, SlowReaderTimeout
from serving.uvicorn_internals.socket_limits import SocketWithLimits

_INTERVAL = 5.0  # seconds between two checks
_READ_AHEAD = 20  # frames are read this many times faster than messages are forwarded


class HttpWithTimeouts(SlowReaderTimeout, AutoHTTPProtocol):  # type: ignore[misc,valid-type]
    """Aborts a connection that sends no whole request in time."""

    client: tuple[str, int] | None
    _request: Any = None  # at the last check
    _waited = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        if self.client is not None:  # or a proxy on IPv4 would be a stranger to a server that listens on IPv6
            self.client = unmapped(self.client[0]), self.client[1]
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


def install_limits(
    message_bytes: int,
    messages: float,
    messages_an_address: float,
    slow_seconds: float,
    count: Callable[[str], object],
) -> None:
    """Have uvicorn use these protocols, and as many connections as the system allows."""
    Limits.message_bytes, Limits.slow_seconds, Limits.count = message_bytes, slow_seconds, count
    Limits.frames, Limits.frames_an_address = _READ_AHEAD * messages, _READ_AHEAD * messages_an_address
    with suppress(ImportError, ValueError, OSError):  # a system without such limits
        import resource

        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # four for each session
    for protocols, name, kind in (
        (uvicorn.config.HTTP_PROTOCOLS, "auto", HttpWithTimeouts),
        (uvicorn.config.WS_PROTOCOLS, "websockets-sansio", SocketWithLimits),
    ):
        protocols[name] = f"{kind.__module__}:{kind.__name__}"

"""Web sockets whose bytes and frames are counted as they arrive.

Uvicorn parses whatever a client sends at once, and passes on whole messages only: frames that end no message (pings,
pongs, fragments) cost time that no middleware sees. Here a socket is read in small slices, at a rate, and not at all
while a message waits for the app. One that sends more than its rate for long is closed: its end would be noticed late.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from serving.http.addresses import network_of, unmapped
from serving.http.rate_limit import TokenBucket
from serving.uvicorn_internals.limits import Limits, SlowReaderTimeout, frame_buckets

_SLICE = 1024  # bytes that are parsed at once: at most 170 frames, some milliseconds
_BLOCK = 4096  # bytes that cost as much as a frame
_LEAST_COST = 0.05  # of a slice, however small
_MAX_FRAGMENTS = 256  # of a message; browsers send some KB in each
_POLICY = 1008  # RFC 6455, section 7.4.1
_BAD_REQUEST = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class SocketWithLimits(SlowReaderTimeout, WebSocketsSansIOProtocol):
    """Reads frames at a rate, and bounds messages, their fragments, and the time of a handshake."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn.max_message_size = Limits.message_bytes
        self._unparsed = bytearray()
        self._buckets: tuple[TokenBucket, ...] = ()  # once the handshake is over
        self._frames = 0  # parsed so far
        self._debt: asyncio.TimerHandle | None = None
        self._behind: float | None = None  # since when more was sent than the rate of this socket allows
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self.client is not None:
            self.client = unmapped(self.client[0]), self.client[1]
        self._deadline = asyncio.get_running_loop().call_later(Limits.head_seconds, self._check_handshake)

    def connection_lost(self, error: Exception | None) -> None:
        for timer in (self._debt, self._deadline):
            if timer is not None:
                timer.cancel()
        self._unparsed.clear()
        super().connection_lost(error)

    def data_received(self, data: bytes) -> None:
        self._unparsed += data
        self._parse()

    async def receive(self) -> Any:
        message = await super().receive()
        self._parse()
        return message

    async def send(self, message: Any) -> None:
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body"):
            self.handshake_complete = True  # refused: or uvicorn would log an error for each
        if self._unparsed:  # sent before the handshake was answered
            self._parse()

    def _parse(self) -> None:
        """Parse as much as the rate allows; read on once all of it is parsed."""
        while self._unparsed and self._may_parse():
            data = bytes(self._unparsed[:_SLICE])
            del self._unparsed[:_SLICE]
            before = self._frames
            super().data_received(data)
            if not self.handshake_initiated and self.conn.handshake_exc is not None:
                self._refuse_handshake()
            elif self.handshake_complete:
                self._spend(self._frames - before + len(data) / _BLOCK)
        if not self._unparsed:
            self._behind = None
        if self.transport.is_closing():
            self._unparsed.clear()
        elif self._unparsed or self._debt is not None:
            self.transport.pause_reading()
        elif not self.read_paused:
            self.transport.resume_reading()

    def _may_parse(self) -> bool:
        """Whether there is no debt, no message waits for the app, and no handshake for its answer."""
        return (
            self._debt is None
            and not self.read_paused
            and self.handshake_initiated == self.handshake_complete
            and not self.transport.is_closing()
        )

    def _spend(self, cost: float) -> None:
        if not self._buckets:
            client = self.scope["client"]  # behind a proxy, the one it forwards
            self._buckets = frame_buckets(network_of(client[0]) if client else "")
        own, shared = (bucket.spend(max(_LEAST_COST, cost)) for bucket in self._buckets)
        loop = asyncio.get_running_loop()
        if own and self._behind is None:
            self._behind = loop.time()
            Limits.count("too-fast")
        if own and self._behind is not None and loop.time() - self._behind > Limits.flood_seconds:
            self._fail("flood", "too many frames")
        elif own or shared:
            self._debt = loop.call_later(max(own, shared), self._go_on)

    def _go_on(self) -> None:
        self._debt = None
        self._parse()

    def handle_events(self) -> None:
        self._frames += len(self.conn.events)
        super().handle_events()

    def handle_cont(self, event: Any) -> None:
        if self.close_sent:
            return
        if len(self.frames) >= _MAX_FRAGMENTS:
            self._fail("fragments", "too many fragments")
            return
        super().handle_cont(event)

    def _fail(self, why: str, reason: str) -> None:
        Limits.count(why)
        self.conn.fail(_POLICY, reason)
        self.handle_parser_exception()  # sends the close frame, and tells the app

    def _refuse_handshake(self) -> None:
        """Answer a handshake that is too long, or no handshake; uvicorn would leave it open without an answer."""
        Limits.count("handshake")
        self.transport.write(b"".join(self.conn.data_to_send()) or _BAD_REQUEST)
        self.transport.close()

    def _check_handshake(self) -> None:
        if not self.handshake_complete and not self.transport.is_closing():
            Limits.count("unfinished")
            self.transport.abort()

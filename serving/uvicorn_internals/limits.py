"""Limits of connections: half a request, half a message, a response that the client does not read, too many frames.

Uvicorn waits for ever in each of the first cases. It finds its protocols by name: `install_limits` replaces them.
Uvicorn also parses whatever a client sends at once, and passes on whole messages only: frames that end no message
(pings, pongs, fragments) cost time that no middleware sees. Here a socket is read in small slices, at a rate, and not
at all while a message waits for the app. One that sends more than its rate for long is closed: its end would be
noticed late.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any, ClassVar, cast

import uvicorn.config
from uvicorn.protocols.http.auto import AutoHTTPProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from serving.http.access import TokenBucket, network_of, unmapped

_LEAST = 1024  # bytes a second that a client must read
_BURST = 2.0  # seconds' worth of frames that may come at once


class Limits:
    """Limits of this process, for every connection."""

    head_seconds: ClassVar[float] = 15.0  # from a connection to a whole request, and from a handshake to its answer
    body_seconds: ClassVar[float] = 180.0  # for what is sent with a request
    slow_seconds: ClassVar[float] = 30.0  # for which a response may go out at less than a kilobyte a second
    message_bytes: ClassVar[int] = 2**20  # of a message of a web socket
    frames: ClassVar[float] = 200.0  # per second, read from one web socket; 4 KB cost as much as a frame
    frames_an_address: ClassVar[float] = 4000.0  # per second, read from all web sockets of one address
    flood_seconds: ClassVar[float] = 10.0  # for which a web socket may send more than is read
    # called with the reason for which a connection was slowed down or ended, for the metrics
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


_COMBINE_SECONDS = 0.001  # within which what is sent goes out in one piece
_COMBINED_BYTES = 2**16  # that do not wait


class CombinedWrites:
    """A transport that writes in one piece what is sent within a moment: a page sends dozens of short messages at once.

    Each by itself would take a call of the system, and wake its reader.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport, self._pieces, self._size = transport, list[bytes](), 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._pieces:
            asyncio.get_running_loop().call_later(_COMBINE_SECONDS, self.flush)
        self._pieces.append(data)
        self._size += len(data)
        if self._size >= _COMBINED_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write everything; nothing where that was done before."""
        pieces, self._pieces, self._size = self._pieces, [], 0
        if pieces and not self._transport.is_closing():
            self._transport.write(b"".join(pieces))

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def get_write_buffer_size(self) -> int:
        return self._transport.get_write_buffer_size() + self._size


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
        self.transport = cast(asyncio.Transport, CombinedWrites(self.transport))
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
    message_bytes: int, messages: float, messages_an_address: float, slow_seconds: float, count: Callable[[str], object]
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

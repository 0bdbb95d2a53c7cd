"""Limits on web sockets: from which sites, how many in total and from one address, and how fast each may send.

Messages that come too fast wait in a queue of their own socket, which may merge them: see `MessageQueue`. When a socket
closes, its waiting messages are dropped.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from serving.http.access import FORBIDDEN, App, Message, Receive, Refusals, Send, Sites, TokenBucket, network_of

POLICY, PROTOCOL, TEXT, LARGE, AGAIN = 1008, 1002, 1003, 1009, 1013  # why a socket is closed (RFC 6455, section 7.4.1)
_REASON = 123  # maximum bytes of a close reason (section 5.5)
_RETRY = 1.0  # seconds after which a message that had to wait is tried again
_READ_AHEAD = 20  # messages are read this many times faster than they are forwarded, so that a close is noticed
_BLOCK = 4096  # bytes that cost as much as one small message; those of pages are smaller
_BURST = 2.0  # seconds' worth of messages that may come at once
_NOTICE_INTERVAL = 5.0  # seconds between two notices to the same window
_ADDRESSES = 4096  # whose rate is tracked, most recently used
_ANY_SITE = Sites()


class MessageQueue(Protocol):
    """Messages of one socket that the server has not received yet."""

    def put(self, message: bytes) -> str | None:
        """Queue a message; return the reason where it is refused. ValueError if it is not a valid message."""

    def take(self) -> bytes | None:
        """Remove and return the next message, or None."""

    def sent(self, message: bytes) -> None:
        """Observe a message that the server sends."""

    def notice(self, sentence: str) -> bytes:
        """Return a message that shows a sentence in the visitor's window."""

    @property
    def page_requested(self) -> bool:
        """Whether the visitor has requested a page yet."""

    @property
    def waits(self) -> bool:
        """Whether messages wait, some of which may be taken later though nothing else happens."""


@dataclass(frozen=True)
class GateLimits:
    """Limits of a `WebSocketGate`."""

    sockets: int  # open at once
    sockets_an_address: int  # open at once from one address; a class behind one router shares an address
    silent_seconds: float  # for which a socket may stay open without requesting a page
    messages: float  # per second, forwarded for one socket
    messages_an_address: float  # per second, forwarded for all sockets of one address


class WebSocketGate:
    """Limits WebSockets and their messages.

    Args:
        app: the next application.
        limits: on sockets and messages.
        create_queue: creates the message queue of a socket.
        refusals: answers to refused visitors.
        sites: the server's names, and the sites it trusts.
        identify: returns the scope of a handshake as the app shall see it.
    """

    def __init__(
        self,
        app: App,
        limits: GateLimits,
        create_queue: Callable[[], MessageQueue],
        refusals: Refusals,
        sites: Sites = _ANY_SITE,
        identify: Callable[[Message], Message] = lambda scope: scope,
    ) -> None:
        self._app, self.limits, self._create_queue, self.refusals = app, limits, create_queue, refusals
        self._sites, self._identify = sites, identify
        self.connections: dict[Connection, None] = {}  # oldest first
        self.buckets_of = lru_cache(_ADDRESSES)(lambda _address: _buckets(limits.messages_an_address))

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket") and (why := self._sites.refusal(scope)):
            await self.refusals.answer(why, scope, FORBIDDEN)(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._connect(self._identify(scope), receive, send)
        elif scope["type"] == "http" and _requests_page(scope) and (why := self._refusal(address_of(scope))):
            await self.refusals.page(why, scope)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _connect(self, scope: Message, receive: Receive, send: Send) -> None:
        address = address_of(scope)
        if why := self._refusal(address):
            await self.refusals.answer(why, scope)(scope, receive, send)
            return
        self._end_silent(address)
        connection = Connection(self, scope, self._create_queue(), receive, send)
        self.connections[connection] = None
        try:
            await connection.run(self._app)
        finally:
            del self.connections[connection]

    def _refusal(self, address: str) -> str | None:
        """Why a new socket from this address is refused, or None. Silent sockets do not count."""
        active = [connection.address for connection in self.connections if connection.page_requested]
        if len(active) >= self.limits.sockets:
            return "too-many-visitors"
        return "too-many-windows" if active.count(address) >= self.limits.sockets_an_address else None

    def _end_silent(self, address: str) -> None:
        """End a silent socket where a limit is reached."""
        everyone = list(self.connections)
        same = [connection for connection in everyone if connection.address == address]
        for connections, most in ((everyone, self.limits.sockets), (same, self.limits.sockets_an_address)):
            silent = next((connection for connection in connections if not connection.page_requested), None)
            if len(connections) >= most and silent:
                silent.end(AGAIN, "silent")


class Connection:
    """One socket with its queue and its rates."""

    def __init__(self, gate: WebSocketGate, scope: Message, queue: MessageQueue, receive: Receive, send: Send) -> None:
        self.address = address_of(scope)
        self._gate, self._queue, self._receive, self._send = gate, queue, receive, send
        self._scope = scope
        own, shared = _buckets(gate.limits.messages), gate.buckets_of(self.address)
        self._forward_buckets, self._read_buckets = zip(own, shared, strict=True)
        self._next = 0.0  # when the next message may be forwarded
        self._next_notice = 0.0
        self._sending = 0
        self._open = self._slowed = False
        self._last: Message | None = None  # the disconnect message
        self._changed = asyncio.Event()
        self._reader: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    @property
    def page_requested(self) -> bool:
        return self._queue.page_requested

    async def run(self, app: App) -> None:
        """Serve the socket from handshake to close."""
        silence = asyncio.get_running_loop().call_later(self._gate.limits.silent_seconds, self._end_if_silent)
        try:
            await app(self._scope, self.receive, self.send)
        finally:
            silence.cancel()
            if self._reader is not None:
                self._reader.cancel()
            if self._closing is not None:
                await self._closing

    async def receive(self) -> Message:
        """Return the next event for the server: the handshake, messages at their rate, the disconnect."""
        if self._reader is None:
            self._reader = asyncio.create_task(self._read())
            return await self._receive()
        while self._last is None:
            now = asyncio.get_running_loop().time()
            self._changed.clear()
            if not self._sending and now >= self._next and (message := self._queue.take()) is not None:
                self._next, self._slowed = now + _spend(self._forward_buckets, max(1.0, len(message) / _BLOCK)), False
                return {"type": "websocket.receive", "bytes": message}
            await self._wait(self._next - now if now < self._next else _RETRY if self._queue.waits else None)
        return self._last

    async def send(self, message: Message) -> None:
        """Send a message of the server. While the client does not read it, nothing new is forwarded."""
        if self._last is not None:
            raise ConnectionResetError
        if message["type"] == "websocket.accept":
            self._open = True
        elif message["type"] == "websocket.send" and message.get("bytes") is not None:
            self._queue.sent(message["bytes"])
        self._sending += 1
        try:
            await self._send(message)
        finally:
            self._sending -= 1
            if self._queue.waits:
                self._changed.set()

    def end(self, code: int, why: str) -> None:
        """Close the socket with a code and a reason."""
        if self._last is None:
            self._gate.refusals.count(why)
            self._last = {"type": "websocket.disconnect", "code": code}
            self._changed.set()
            if self._open:
                self._closing = asyncio.create_task(self._close(code, why))

    async def _read(self) -> None:
        """Read messages faster than they are forwarded, so that a disconnect is noticed at once."""
        await asyncio.sleep(0)  # after the handshake
        while self._last is None:
            message = await self._receive()
            if message["type"] != "websocket.receive":
                self._last = message
                if message.get("code") == LARGE:  # its protocol has closed it already
                    self._gate.refusals.count("too-large")
            elif message.get("bytes") is None:
                self.end(TEXT, "text")
            else:
                await self._enqueue(message["bytes"])
            self._changed.set()

    async def _enqueue(self, data: bytes) -> None:
        try:
            if why := self._queue.put(data):
                await self._refuse(why)
        except ValueError:
            self.end(PROTOCOL, "nonsense")
            return
        self._changed.set()
        if pause := _spend(self._read_buckets, 1 + len(data) / _BLOCK):
            if not self._slowed:
                self._slowed = True
                await self._refuse("too-fast")
            await asyncio.sleep(pause)

    async def _refuse(self, why: str) -> None:
        """Count a refusal and show it in the window, unless it was shown one just now or does not read."""
        self._gate.refusals.count(why)
        now = asyncio.get_running_loop().time()
        if self._open and not self._sending and now >= self._next_notice:
            self._next_notice = now + _NOTICE_INTERVAL
            with suppress(OSError):  # closed in the meantime
                notice = self._queue.notice(self._gate.refusals.sentence(why, self._scope))
                await self.send({"type": "websocket.send", "bytes": notice})

    async def _wait(self, seconds: float | None) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()

    async def _close(self, code: int, why: str) -> None:
        reason = self._gate.refusals.sentence(why, self._scope).encode()[:_REASON].decode(errors="ignore")
        with suppress(OSError):  # closed already
            await self._send({"type": "websocket.close", "code": code, "reason": reason})

    def _end_if_silent(self) -> None:
        if not self.page_requested:
            self.end(POLICY, "silent")


def address_of(scope: Message) -> str:
    """Return the client's address, or its network; behind a proxy named by FORWARDED_ALLOW_IPS, what it forwards."""
    client = scope.get("client")
    return network_of(str(client[0])) if client else ""


def _buckets(rate: float) -> tuple[TokenBucket, TokenBucket]:
    """Buckets for messages that are forwarded, and for messages that are read."""
    return TokenBucket(rate, _BURST * rate), TokenBucket(_READ_AHEAD * rate, _READ_AHEAD * _BURST * rate)


def _spend(buckets: Iterable[TokenBucket], cost: float = 1.0) -> float:
    """Spend from every bucket; the seconds until all are paid back."""
    return max([bucket.spend(cost) for bucket in buckets])


def _requests_page(scope: Message) -> bool:
    accepted = dict(scope["headers"]).get(b"accept", b"")
    return scope["method"] == "GET" and b"text/html" in accepted and "." not in scope["path"].rpartition("/")[2]

"""Who comes in by the web socket, and how fast: so many sockets, a page behind each of them, and a rate for each.

What one visitor sends too fast waits, by itself, and becomes less meanwhile: see `Mail`. Who leaves is followed by
nothing: what waited is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from serving.http.rate_limit import Allowance
from serving.http.refusals import App, Message, Receive, Refusals, Send

POLICY, PROTOCOL, TEXT, LARGE, AGAIN = 1008, 1002, 1003, 1009, 1013  # why a socket is closed (RFC 6455, section 7.4.1)
_REASON = 123  # bytes of the sentence that a socket is closed with (section 5.5)
_READ_AHEAD = 20  # messages are read so many times faster than they are handed on, so that who leaves is noticed
_BLOCK = 4096  # bytes that cost as much to read as one small message
_BURST = 2.0  # seconds of messages that may come at once
_QUIET = 5.0  # seconds between two sentences to the same window
_ADDRESSES = 4096  # whose pace is known, the last seen


class Mail(Protocol):
    """What a visitor has sent, and the server has not taken yet."""

    def put(self, message: bytes) -> str | None:
        """Take a message in; where it goes no further, why.

        Raises:
            ValueError: if it is no message.
        """

    def take(self) -> bytes | None:
        """The next message; None while there is none."""

    def sent(self, message: bytes) -> None:
        """Look at what goes out."""

    def notice(self, sentence: str) -> bytes:
        """What shows a sentence in the visitor's window."""

    @property
    def asks(self) -> bool:
        """Whether a page was asked for yet."""


@dataclass(frozen=True)
class Bounds:
    """What visitors may have.

    Attributes:
        sockets: open at once.
        sockets_an_address: of these, for one address: a class behind one router has one.
        silent_seconds: for which a socket may stay open and ask for no page.
        messages: a second, handed on for one socket.
        messages_an_address: a second, handed on for all sockets of one address.
    """

    sockets: int
    sockets_an_address: int
    silent_seconds: float
    messages: float
    messages_an_address: float


class Gate:
    """ASGI middleware before all else.

    Args:
        app: what comes after.
        bounds: what visitors may have.
        mail: makes what keeps the messages of a socket.
        refusals: how who is turned away is told.
    """

    def __init__(self, app: App, bounds: Bounds, mail: Callable[[], Mail], refusals: Refusals) -> None:
        self._app, self.bounds, self._mail, self.refusals = app, bounds, mail, refusals
        self.visits: dict[Visit, None] = {}  # the first to come first
        self.paces_of = lru_cache(_ADDRESSES)(lambda _address: _paces(bounds.messages_an_address))

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._visit(scope, receive, send)
        elif scope["type"] == "http" and _wants_a_page(scope) and (why := self._full(address_of(scope))):
            await self.refusals.page(why, scope)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _visit(self, scope: Message, receive: Receive, send: Send) -> None:
        address = address_of(scope)
        if why := self._full(address):
            await self.refusals.answer(why, scope)(scope, receive, send)
            return
        self._make_room(address)
        visit = Visit(self, scope, self._mail(), receive, send)
        self.visits[visit] = None
        try:
            await visit.run(self._app)
        finally:
            del self.visits[visit]

    def _full(self, address: str) -> str | None:
        """Why nobody else can come from there, where it is so; who is silent makes room."""
        speaking = [visit.address for visit in self.visits if visit.asks]
        if len(speaking) >= self.bounds.sockets:
            return "too-many-visitors"
        return "too-many-windows" if speaking.count(address) >= self.bounds.sockets_an_address else None

    def _make_room(self, address: str) -> None:
        alike = [visit for visit in self.visits if visit.address == address]
        for there, most in ((list(self.visits), self.bounds.sockets), (alike, self.bounds.sockets_an_address)):
            if len(there) >= most and (silent := next((visit for visit in there if not visit.asks), None)):
                silent.end(AGAIN, "silent")


class Visit:
    """One socket: what it may do now."""

    def __init__(self, gate: Gate, scope: Message, mail: Mail, receive: Receive, send: Send) -> None:
        self.address = address_of(scope)
        self._gate, self._mail, self._receive, self._send = gate, mail, receive, send
        self._scope = scope
        self._handing, self._reading = zip(_paces(gate.bounds.messages), gate.paces_of(self.address), strict=True)
        self._next = 0.0  # when the next message may be handed on
        self._quiet = 0.0  # until when no other sentence is sent
        self._sending = 0
        self._open = self._held = False
        self._over: Message | None = None  # the last that its server hears
        self._news = asyncio.Event()
        self._reader: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    @property
    def asks(self) -> bool:
        return self._mail.asks

    async def run(self, app: App) -> None:
        """From handshake to end."""
        silence = asyncio.get_running_loop().call_later(self._gate.bounds.silent_seconds, self._end_if_silent)
        try:
            await app(self._scope, self.receive, self.send)
        finally:
            silence.cancel()
            if self._reader is not None:
                self._reader.cancel()
            if self._closing is not None:
                await self._closing

    async def receive(self) -> Message:
        """What the server gets: the handshake, then messages at their pace, then the end."""
        if self._reader is None:
            self._reader = asyncio.create_task(self._read())
            return await self._receive()
        while self._over is None:
            now = asyncio.get_running_loop().time()
            self._news.clear()
            if not self._sending and now >= self._next and (message := self._mail.take()) is not None:
                self._next, self._held = now + _spend(self._handing), False
                return {"type": "websocket.receive", "bytes": message}
            await self._wait(self._next - now if now < self._next else None)
        return self._over

    async def send(self, message: Message) -> None:
        """What the server sends. Who does not read it gets nothing new computed."""
        if self._over is not None:
            raise ConnectionResetError
        if message["type"] == "websocket.accept":
            self._open = True
        elif message["type"] == "websocket.send" and message.get("bytes") is not None:
            self._mail.sent(message["bytes"])
        self._sending += 1
        try:
            await self._send(message)
        finally:
            self._sending -= 1
            self._news.set()

    def end(self, code: int, why: str) -> None:
        """Close it, and say why."""
        if self._over is None:
            self._gate.refusals.count(why)
            self._over = {"type": "websocket.disconnect", "code": code}
            self._news.set()
            if self._open:
                self._closing = asyncio.create_task(self._close(code, why))

    async def _read(self) -> None:
        """Take in what comes, faster than it is handed on: so the end is seen, and what it makes pointless goes."""
        await asyncio.sleep(0)  # after the handshake
        while self._over is None:
            message = await self._receive()
            if message["type"] != "websocket.receive":
                self._over = message
                if message.get("code") == LARGE:  # its protocol has closed it already
                    self._gate.refusals.count("too-large")
            elif message.get("bytes") is None:
                self.end(TEXT, "text")
            else:
                await self._take_in(message["bytes"])
            self._news.set()

    async def _take_in(self, data: bytes) -> None:
        try:
            if why := self._mail.put(data):
                await self._refuse(why)
        except ValueError:
            self.end(PROTOCOL, "nonsense")
            return
        self._news.set()
        if pause := _spend(self._reading, 1 + len(data) / _BLOCK):
            if not self._held:
                self._held = True
                await self._refuse("too-fast")
            await asyncio.sleep(pause)

    async def _refuse(self, why: str) -> None:
        """Count it, and say it in the window, unless it was told something just now or does not read."""
        self._gate.refusals.count(why)
        now = asyncio.get_running_loop().time()
        if self._open and not self._sending and now >= self._quiet:
            self._quiet = now + _QUIET
            with suppress(OSError):  # gone meanwhile
                notice = self._mail.notice(self._gate.refusals.say(why, self._scope))
                await self.send({"type": "websocket.send", "bytes": notice})

    async def _wait(self, seconds: float | None) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()

    async def _close(self, code: int, why: str) -> None:
        reason = self._gate.refusals.say(why, self._scope).encode()[:_REASON].decode(errors="ignore")
        with suppress(OSError):  # gone already
            await self._send({"type": "websocket.close", "code": code, "reason": reason})

    def _end_if_silent(self) -> None:
        if not self.asks:
            self.end(POLICY, "silent")


def address_of(scope: Message) -> str:
    """Where a visitor comes from; behind a proxy that FORWARDED_ALLOW_IPS names, as that says."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def _paces(rate: float) -> tuple[Allowance, Allowance]:
    """Of what is handed on, and of what is read: that is faster."""
    return Allowance(rate, _BURST * rate), Allowance(_READ_AHEAD * rate, _READ_AHEAD * _BURST * rate)


def _spend(paces: Iterable[Allowance], cost: float = 1.0) -> float:
    """Of a window and of its address, and the seconds until both are paid back."""
    return max([pace.spend(cost) for pace in paces])


def _wants_a_page(scope: Message) -> bool:
    accepted = dict(scope["headers"]).get(b"accept", b"")
    return scope["method"] == "GET" and b"text/html" in accepted and "." not in scope["path"].rpartition("/")[2]

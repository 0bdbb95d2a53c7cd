"""Sockets without end, without a page, too fast or too slow: each is bounded, and nobody else notices."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from hosting.allowance import Allowance
from hosting.gate import Bounds, Gate
from hosting.refusals import Message, Refusals

pytestmark = pytest.mark.attack("sockets")
BOUNDS = Bounds(sockets=4, sockets_an_address=2, silent_seconds=60, messages=1000, messages_an_address=10_000)
SLOW = replace(BOUNDS, messages=5)
GONE = {"type": "websocket.disconnect", "code": 1006}


class Letters:
    """Mail that keeps every message: b"page" asks for a page, b"bad" is none, b"drop" goes no further."""

    def __init__(self) -> None:
        self.waiting: deque[bytes] = deque()
        self.out: list[bytes] = []
        self.asks = False

    def put(self, message: bytes) -> str | None:
        if message == b"bad":
            raise ValueError("no message")
        if message == b"drop":
            return "not-offered"
        self.asks = self.asks or message == b"page"
        self.waiting.append(message)
        return None

    def take(self) -> bytes | None:
        return self.waiting.popleft() if self.waiting else None

    def sent(self, message: bytes) -> None:
        self.out.append(message)

    def notice(self, sentence: str) -> bytes:
        return sentence.encode()


class Server:
    """A gate with an app behind it that takes down what each socket sends, and answers."""

    def __init__(self, bounds: Bounds = BOUNDS) -> None:
        self.away: Counter[str] = Counter()
        self.heard: dict[str, list[bytes]] = {}
        self.ended: list[str] = []
        refusals = Refusals("<{}>".format, lambda why: self.away.update([why]))
        self.gate = Gate(self._app, bounds, Letters, refusals)

    async def _app(self, scope: Message, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200})
            return
        await receive()
        await send({"type": "websocket.accept"})
        name = scope["name"]
        while (message := await receive())["type"] == "websocket.receive":
            self.heard.setdefault(name, []).append(message["bytes"])
            await send({"type": "websocket.send", "bytes": b"seen"})
        self.ended.append(name)


class Socket:
    """A browser's end."""

    def __init__(self, server: Server, name: str = "a", address: str = "10.0.0.1") -> None:
        self.coming: asyncio.Queue[Message] = asyncio.Queue()
        self.coming.put_nowait({"type": "websocket.connect"})
        self.got: list[Message] = []
        self.reads = asyncio.Event()
        self.reads.set()
        scope = {"type": "websocket", "client": (address, 1), "name": name}
        self.task = asyncio.create_task(server.gate(scope, self.coming.get, self._take))

    async def _take(self, message: Message) -> None:
        await self.reads.wait()
        self.got.append(message)

    def say(self, *messages: bytes) -> None:
        for message in messages:
            self.coming.put_nowait({"type": "websocket.receive", "bytes": message})

    def leave(self) -> None:
        self.coming.put_nowait(GONE)

    @property
    def kinds(self) -> list[str]:
        return [str(message["type"]) for message in self.got]


async def settled() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


def run(test: Callable[[], Any]) -> None:
    asyncio.run(test())


def test_what_is_sent_arrives_in_order_and_is_answered() -> None:
    async def test() -> None:
        server = Server()
        socket = Socket(server)
        socket.say(b"page", b"one", b"two")
        await settled()
        assert server.heard == {"a": [b"page", b"one", b"two"]}
        assert socket.kinds == ["websocket.accept", *["websocket.send"] * 3]
        socket.leave()
        await socket.task
        assert (server.ended, server.away, server.gate.visits) == (["a"], Counter(), {})

    run(test)


def test_one_more_than_an_address_may_have_is_told_in_words() -> None:
    async def test() -> None:
        server = Server()
        sockets = [Socket(server, str(number)) for number in range(2)]
        for socket in sockets:
            socket.say(b"page")
        await settled()
        third = Socket(server, "third")
        await third.task
        assert third.kinds == ["websocket.http.response.start", "websocket.http.response.body"]
        assert (third.got[0]["status"], third.got[1]["body"]) == (503, b"<too-many-windows>")
        assert server.away == {"too-many-windows": 1}
        elsewhere = Socket(server, "elsewhere", "10.0.0.2")
        elsewhere.say(b"page")
        await settled()
        assert server.heard["elsewhere"] == [b"page"]
        sockets[0].leave()
        await sockets[0].task
        fourth = Socket(server, "fourth")
        fourth.say(b"page")
        await settled()
        assert server.heard["fourth"] == [b"page"], "who leaves makes room"

    run(test)


def test_a_full_server_says_so_on_its_page_and_lets_nobody_in() -> None:
    async def test() -> None:
        server = Server()
        for number in range(4):
            Socket(server, str(number), f"10.0.0.{number}").say(b"page")
        await settled()
        got: list[Message] = []

        async def take(message: Message) -> None:
            got.append(message)

        scope = {"type": "http", "client": ("10.0.0.9", 1), "method": "GET", "path": "/transformer"}
        for headers, status in (([(b"accept", b"text/html")], 503), ([(b"accept", b"*/*")], 200)):
            got.clear()
            await server.gate(scope | {"headers": headers}, asyncio.Queue().get, take)
            assert got[0]["status"] == status
        newcomer = Socket(server, "new", "10.0.0.9")
        await newcomer.task
        assert newcomer.got[1]["body"] == b"<too-many-visitors>"

    run(test)


def test_sockets_without_a_page_do_not_keep_a_newcomer_out() -> None:
    async def test() -> None:
        server = Server()
        silent = [Socket(server, f"silent {number}", f"10.0.0.{number}") for number in range(4)]
        await settled()
        newcomer = Socket(server, "new", "10.0.0.9")
        newcomer.say(b"page")
        await settled()
        assert server.heard == {"new": [b"page"]}
        assert server.ended == ["silent 0"], "the first to come goes first"
        assert silent[0].kinds == ["websocket.accept", "websocket.close"]
        assert server.away == {"silent": 1}

    run(test)


def test_a_socket_that_asks_for_no_page_is_closed_in_time() -> None:
    async def test() -> None:
        server = Server(replace(BOUNDS, silent_seconds=0.02))
        silent, speaking = Socket(server, "silent"), Socket(server, "speaking")
        silent.say(b"hello")
        speaking.say(b"page")
        await silent.task
        assert silent.got[-1] == {"type": "websocket.close", "code": 1008, "reason": "<silent>"}
        assert not speaking.task.done()

    run(test)


@pytest.mark.parametrize(
    ("message", "code", "why"),
    [({"bytes": b"bad"}, 1002, "nonsense"), ({"text": "<script>"}, 1003, "text"), ({"bytes": None}, 1003, "text")],
)
def test_what_is_no_message_ends_its_socket_alone(message: Message, code: int, why: str) -> None:
    async def test() -> None:
        server = Server()
        other, socket = Socket(server, "other", "10.0.0.2"), Socket(server)
        socket.coming.put_nowait({"type": "websocket.receive", **message})
        await socket.task
        assert socket.got[-1] == {"type": "websocket.close", "code": code, "reason": f"<{why}>"}
        assert server.away == {why: 1}
        other.say(b"page")
        await settled()
        assert server.heard == {"other": [b"page"]}

    run(test)


def test_what_goes_no_further_is_counted_and_told_once_in_a_while() -> None:
    async def test() -> None:
        server = Server()
        socket = Socket(server)
        await settled()
        socket.say(b"drop", b"page", b"drop")
        await settled()
        assert server.heard == {"a": [b"page"]}
        assert server.away == {"not-offered": 2}
        sent = [message["bytes"] for message in socket.got if message["type"] == "websocket.send"]
        assert sorted(sent) == [b"<not-offered>", b"seen"]

    run(test)


def test_a_message_that_its_protocol_cut_off_is_counted() -> None:
    async def test() -> None:
        server = Server()
        socket = Socket(server)
        socket.coming.put_nowait({"type": "websocket.disconnect", "code": 1009, "reason": "over size limit"})
        await socket.task
        assert server.away == {"too-large": 1}

    run(test)


def test_too_fast_waits_alone() -> None:
    async def test() -> None:
        server = Server(SLOW)
        fast, other = Socket(server, "fast"), Socket(server, "other")
        fast.say(*[b"page"] * 500)
        await settled()
        assert len(server.heard["fast"]) == 11, "a burst of two seconds, and one on credit"
        other.say(b"page")
        await settled()
        assert server.heard["other"] == [b"page"]
        assert server.away == {"too-fast": 1}
        assert {"type": "websocket.send", "bytes": b"<too-fast>"} in fast.got

    run(test)


def test_many_windows_of_one_address_share_what_it_may_send() -> None:
    async def test() -> None:
        server = Server(replace(BOUNDS, messages=1000, messages_an_address=5))
        sockets = [Socket(server, name) for name in ("one", "two")]
        for socket in sockets:
            socket.say(*[b"page"] * 100)
        elsewhere = Socket(server, "elsewhere", "10.0.0.2")
        elsewhere.say(*[b"page"] * 10)
        await settled()
        assert sum(len(server.heard[name]) for name in ("one", "two")) <= 12, "a burst of two seconds, and credit"
        assert len(server.heard["elsewhere"]) == 10
        for socket in sockets:
            socket.leave()
            await socket.task
        again = Socket(server, "again")
        again.say(*[b"page"] * 10)
        await settled()
        assert len(server.heard["again"]) <= 1, "who comes back is not forgotten"

    run(test)


def test_windows_of_one_address_share_how_much_is_read_of_them() -> None:
    """Or two hundred of them would have a megabyte each read, again and again."""

    async def test() -> None:
        server = Server(replace(BOUNDS, messages_an_address=5))
        sockets = [Socket(server, name) for name in ("one", "two")]
        elsewhere = Socket(server, "elsewhere", "10.0.0.2")
        for socket in (*sockets, elsewhere):
            socket.say(*[bytes(2**20)] * 3)
        await settled()
        assert [len(server.heard[name]) for name in ("one", "two", "elsewhere")] == [1, 1, 1]
        assert server.away == {"too-fast": 3}

    run(test)


def test_who_leaves_is_followed_by_nothing() -> None:
    async def test() -> None:
        server = Server(SLOW)
        socket = Socket(server)
        socket.say(*[b"page"] * 100)
        socket.leave()
        await socket.task
        assert len(server.heard.get("a", [])) <= 11
        assert server.ended == ["a"]

    run(test)


def test_who_does_not_read_gets_nothing_new_computed() -> None:
    async def test() -> None:
        server = Server()
        socket = Socket(server)
        await settled()
        socket.reads.clear()
        socket.say(b"page", b"one", b"two")
        await settled()
        assert server.heard == {"a": [b"page"]}
        socket.reads.set()
        await settled()
        assert server.heard == {"a": [b"page", b"one", b"two"]}

    run(test)


def test_large_messages_are_read_more_slowly_than_small_ones() -> None:
    async def test() -> None:
        server = Server(SLOW)
        socket = Socket(server)
        socket.say(*[bytes(2**20)] * 3)
        await settled()
        assert len(server.heard["a"]) == 1
        assert server.away == {"too-fast": 1}

    run(test)


def test_an_app_that_fails_leaves_no_socket_behind() -> None:
    async def test() -> None:
        async def failing(_scope: Message, _receive: Any, _send: Any) -> None:
            raise RuntimeError("at once")

        gate = Gate(failing, BOUNDS, Letters, Refusals(lambda why, _scope: why, str))
        for _ in range(5):
            with suppress(RuntimeError):
                await gate({"type": "websocket", "client": None}, asyncio.Queue().get, asyncio.Queue().put)
        assert gate.visits == {}

    run(test)


def test_an_allowance_is_a_bucket_that_fills() -> None:
    now = [0.0]
    allowance = Allowance(rate=2, burst=4, clock=lambda: now[0])
    assert [allowance.spend() for _ in range(6)] == [0, 0, 0, 0, 0.5, 1.0]
    now[0] = 1.0
    assert allowance.spend(0) == 0.0
    now[0] = 100.0
    assert allowance.spend(4) == 0.0
    assert allowance.spend(1) == 0.5

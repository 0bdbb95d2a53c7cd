"""Sockets that send too fast or too much: they wait, by themselves, and nobody else does."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

import pytest

from serving.http import websocket_gate as gate
from serving.http.access import TokenBucket
from tests.serving.http.sockets import BOUNDS, SLOW, Server, Socket, run, settled

pytestmark = pytest.mark.attack("sockets")


@pytest.fixture(autouse=True)
def time_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a machine with other work pays back while a test waits."""
    monkeypatch.setattr(gate, "TokenBucket", partial(TokenBucket, clock=lambda: 0.0))


def test_too_fast_waits_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    # On a busy machine a message that waits would become due during the test, and be counted.
    monkeypatch.setattr(asyncio.BaseEventLoop, "time", lambda _loop: 0.0)

    async def test() -> None:
        server = Server(replace(BOUNDS, messages=1))
        fast, other = Socket(server, "fast"), Socket(server, "other")
        fast.send(*[b"page"] * 500)
        await settled()
        assert len(server.received["fast"]) == 3, "a burst of two seconds, and one on credit"
        other.send(b"page")
        await settled()
        assert server.received["other"] == [b"page"]
        assert server.away == {"too-fast": 1}
        assert {"type": "websocket.send", "bytes": b"<too-fast>"} in fast.got

    run(test)


def test_many_windows_of_one_address_share_what_it_may_send() -> None:
    async def test() -> None:
        server = Server(replace(BOUNDS, messages=1000, messages_an_address=5))
        sockets = [Socket(server, name) for name in ("one", "two")]
        for socket in sockets:
            socket.send(*[b"page"] * 100)
        other = Socket(server, "elsewhere", "10.0.0.2")
        other.send(*[b"page"] * 10)
        await settled()
        assert sum(len(server.received[name]) for name in ("one", "two")) <= 12, "a burst of two seconds, and credit"
        assert len(server.received["elsewhere"]) == 10
        for socket in sockets:
            socket.leave()
            await socket.task
        again = Socket(server, "again")
        again.send(*[b"page"] * 10)
        await settled()
        assert len(server.received["again"]) <= 1, "who comes back is not forgotten"

    run(test)


def test_windows_of_one_address_share_how_much_is_read_of_them() -> None:
    """Or two hundred of them would have a megabyte each read, again and again."""

    async def test() -> None:
        server = Server(replace(BOUNDS, messages_an_address=5))
        sockets = [Socket(server, name) for name in ("one", "two")]
        other = Socket(server, "elsewhere", "10.0.0.2")
        for socket in (*sockets, other):
            socket.send(*[bytes(2**20)] * 3)
        await settled()
        assert [len(server.received[name]) for name in ("one", "two", "elsewhere")] == [1, 1, 1]
        assert server.away == {"too-fast": 3}

    run(test)


def test_large_messages_are_read_more_slowly_than_small_ones() -> None:
    async def test() -> None:
        server = Server(SLOW)
        socket = Socket(server)
        socket.send(*[bytes(2**20)] * 3)
        await settled()
        assert len(server.received["a"]) == 1
        assert server.away == {"too-fast": 1}

    run(test)


def test_large_requests_are_passed_on_more_slowly_than_small_ones() -> None:
    """A request with the states of a thousand controls keeps the server busy for longer than one of a page."""

    async def test() -> None:
        server = Server(replace(BOUNDS, messages=100))
        large, small = Socket(server, "large"), Socket(server, "small", "10.0.0.2")
        large.send(*[bytes(400_000)] * 6)
        small.send(*[bytes(500)] * 100)
        await settled()
        assert (len(server.received["large"]), len(server.received["small"])) == (3, 100)

    run(test)


def test_an_allowance_is_a_bucket_that_fills() -> None:
    now = [0.0]
    bucket = TokenBucket(rate=2, burst=4, clock=lambda: now[0])
    assert [bucket.spend() for _ in range(6)] == [0, 0, 0, 0, 0.5, 1.0]
    now[0] = 1.0
    assert bucket.spend(0) == 0.0
    now[0] = 100.0
    assert bucket.spend(4) == 0.0
    assert bucket.spend(1) == 0.5

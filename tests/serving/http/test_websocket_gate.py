"""Sockets without end, without a page: each is bounded, and nobody else notices."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest

from serving.http.access import Message
from tests.serving.http.sockets import BOUNDS, SLOW, Server, Socket, asynchronous, settled

pytestmark = pytest.mark.attack("sockets")


@asynchronous
async def test_what_is_sent_arrives_in_order_and_is_answered() -> None:
    server = Server()
    socket = Socket(server)
    socket.send(b"page", b"one", b"two")
    await settled()
    assert server.received == {"a": [b"page", b"one", b"two"]}
    assert socket.kinds == ["websocket.accept", *["websocket.send"] * 3]
    socket.leave()
    await socket.task
    assert (server.ended, server.away, server.gate.connections) == (["a"], Counter(), {})


@asynchronous
async def test_one_more_than_an_address_may_have_is_told_in_words() -> None:
    server = Server()
    sockets = [Socket(server, str(number)) for number in range(2)]
    for socket in sockets:
        socket.send(b"page")
    await settled()
    third = Socket(server, "third")
    await third.task
    assert third.kinds == ["websocket.http.response.start", "websocket.http.response.body"]
    assert (third.got[0]["status"], third.got[1]["body"]) == (503, b"<too-many-windows>")
    assert server.away == {"too-many-windows": 1}
    sockets[0].leave()
    await sockets[0].task
    fourth = Socket(server, "fourth")
    fourth.send(b"page")
    await settled()
    assert server.received["fourth"] == [b"page"], "who leaves makes room"


@asynchronous
async def test_a_full_server_says_so_on_its_page_and_lets_nobody_in() -> None:
    server = Server()
    for number in range(4):
        Socket(server, str(number), f"10.0.0.{number}").send(b"page")
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


@asynchronous
async def test_sockets_without_a_page_do_not_keep_a_newcomer_out() -> None:
    server = Server()
    silent = [Socket(server, f"silent {number}", f"10.0.0.{number}") for number in range(4)]
    await settled()
    newcomer = Socket(server, "new", "10.0.0.9")
    newcomer.send(b"page")
    await settled()
    assert server.received == {"new": [b"page"]}
    assert server.ended == ["silent 0"], "the first to come goes first"
    assert silent[0].kinds == ["websocket.accept", "websocket.close"]
    assert server.away == {"silent": 1}


@asynchronous
async def test_a_socket_that_asks_for_no_page_is_closed_in_time() -> None:
    server = Server(replace(BOUNDS, silent_seconds=0.02))
    silent, speaking = Socket(server, "silent"), Socket(server, "speaking")
    silent.send(b"hello")
    speaking.send(b"page")
    await silent.task
    assert silent.got[-1] == {"type": "websocket.close", "code": 1008, "reason": "<silent>"}
    assert not speaking.task.done()


@pytest.mark.parametrize(
    ("message", "code", "why"),
    [({"bytes": b"bad"}, 1002, "nonsense"), ({"text": "<script>"}, 1003, "text"), ({"bytes": None}, 1003, "text")],
)
@asynchronous
async def test_what_is_no_message_ends_its_socket_alone(message: Message, code: int, why: str) -> None:
    server = Server()
    other, socket = Socket(server, "other", "10.0.0.2"), Socket(server)
    socket.coming.put_nowait({"type": "websocket.receive", **message})
    await socket.task
    assert socket.got[-1] == {"type": "websocket.close", "code": code, "reason": f"<{why}>"}
    assert server.away == {why: 1}
    other.send(b"page")
    await settled()
    assert server.received == {"other": [b"page"]}


@asynchronous
async def test_who_leaves_is_followed_by_nothing() -> None:
    server = Server(SLOW)
    socket = Socket(server)
    socket.send(*[b"page"] * 100)
    socket.leave()
    await socket.task
    assert len(server.received.get("a", [])) <= 11
    assert server.ended == ["a"]
    cut_off = Socket(server)
    cut_off.coming.put_nowait({"type": "websocket.disconnect", "code": 1009, "reason": "over size limit"})
    await cut_off.task
    assert server.away["too-large"] == 1


@asynchronous
async def test_what_goes_no_further_is_counted_and_told_once_in_a_while() -> None:
    server = Server()
    socket = Socket(server)
    await settled()
    socket.send(b"drop", b"page", b"drop")
    await settled()
    assert (server.received, server.away) == ({"a": [b"page"]}, {"not-offered": 2})
    sent = [message["bytes"] for message in socket.got if message["type"] == "websocket.send"]
    assert sorted(sent) == [b"<not-offered>", b"seen"]


@asynchronous
async def test_an_app_that_fails_leaves_no_socket_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Server, "_app", lambda *_: asyncio.sleep(0, 1 / 0))
    server = Server()
    with pytest.raises(ZeroDivisionError):
        await Socket(server).task
    assert server.gate.connections == {}


@asynchronous
async def test_who_does_not_read_gets_nothing_new_computed() -> None:
    server = Server()
    socket = Socket(server)
    await settled()
    socket.reads.clear()
    socket.send(b"page", b"one", b"two")
    await settled()
    assert server.received == {"a": [b"page"]}
    socket.reads.set()
    await settled()
    assert server.received == {"a": [b"page", b"one", b"two"]}

"""Addresses, rates, and the sites and names that a server answers to."""

import asyncio
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from serving.http import websocket_gate as gate
from serving.http.access import Message, Refusals, Sites, TokenBucket, network_of, unmapped
from serving.http.websocket_gate import WebSocketGate
from tests.serving.http.sockets import BOUNDS, SLOW, PlainQueue, Server, Socket, asynchronous, settled

pytestmark = pytest.mark.attack("connections")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("unknown", "", False),
    ],
)
def test_a_network_of_ipv6_counts_as_one_visitor(one: str, other: str, same: bool) -> None:
    assert (network_of(one) == network_of(other)) is same
    plain = {"::ffff:127.0.0.1": "127.0.0.1", "10.0.0.1": "10.0.0.1", "::1": "::1", "testclient": "testclient"}
    assert {address: unmapped(address) for address in plain} == plain


@pytest.fixture(autouse=True)
def time_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a machine with other work pays back while a test waits."""
    monkeypatch.setattr(gate, "TokenBucket", partial(TokenBucket, clock=lambda: 0.0))


@asynchronous
async def test_too_fast_waits_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    # On a busy machine a message that waits would become due during the test, and be counted.
    monkeypatch.setattr(asyncio.BaseEventLoop, "time", lambda _loop: 0.0)
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


@asynchronous
async def test_many_windows_of_one_address_share_what_it_may_send() -> None:
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


@asynchronous
async def test_large_messages_are_read_and_passed_on_more_slowly_than_small_ones() -> None:
    """A request with the states of a thousand controls keeps the server busy for longer than one of a page.

    And windows of one address share how much is read, or two hundred would have a megabyte each read, again and again.
    """
    server = Server(replace(BOUNDS, messages=100))
    large, small = Socket(server, "large"), Socket(server, "small", "10.0.0.2")
    large.send(*[bytes(400_000)] * 6)
    small.send(*[bytes(500)] * 100)
    await settled()
    assert (len(server.received["large"]), len(server.received["small"])) == (3, 100)
    for bounds in (SLOW, replace(BOUNDS, messages_an_address=5)):
        server = Server(bounds)
        for name, address in (("one", "10.0.0.1"), ("two", "10.0.0.1"), ("elsewhere", "10.0.0.2")):
            Socket(server, name, address).send(*[bytes(2**20)] * 3)
        await settled()
        assert [len(server.received[name]) for name in ("one", "two", "elsewhere")] == [1, 1, 1]
        assert server.away == {"too-fast": 3}


def test_an_allowance_is_a_bucket_that_fills() -> None:
    now = [0.0]
    bucket = TokenBucket(rate=2, burst=4, clock=lambda: now[0])
    assert [bucket.spend() for _ in range(6)] == [0, 0, 0, 0, 0.5, 1.0]
    now[0] = 1.0
    assert bucket.spend(0) == 0.0
    now[0] = 100.0
    assert bucket.spend(4) == 0.0
    assert bucket.spend(1) == 0.5


ANY_NAME = Sites(origins=lambda: ["https://atlas.example"])
AT_HOME = Sites(hosts=lambda: ["mymachine", "*.lab.example"], origins=tuple)


def handshake(host: str | None = "localhost:8501", *origins: str, kind: str = "websocket") -> Message:
    headers = [(b"origin", origin.encode()) for origin in origins]
    if host is not None:
        headers.append((b"host", host.encode()))
    return {"type": kind, "method": "GET", "path": "/", "client": ("10.0.0.1", 1), "headers": headers}


@pytest.mark.parametrize(
    ("scope", "why"),
    [
        (handshake("atlas.example", "https://atlas.example"), None),
        (handshake("inside:8501", "https://atlas.example"), None),  # a proxy changed the name
        (handshake("localhost:8501", "http://localhost:8501"), None),
        (handshake(), None),  # no browser
        (handshake("atlas.example", "https://elsewhere.example"), "foreign-origin"),
        (handshake("atlas.example", "null"), "foreign-origin"),
        (handshake("atlas.example", "https://" + "x" * 20_000), "foreign-origin"),
        (handshake("atlas.example", "https://atlas.example", "https://elsewhere.example"), "foreign-origin"),
        (handshake(None, ""), "foreign-origin"),
        # Streamlit sends no leave to read.
        (handshake("atlas.example", "https://elsewhere.example", kind="http"), None),
    ],
)
def test_a_session_is_opened_by_the_servers_own_pages(scope: Message, why: str | None) -> None:
    assert ANY_NAME.refusal(scope) == why
    assert Sites().refusal(scope) is None, "without a check any site may"


@pytest.mark.parametrize("kind", ["websocket", "http"])
@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("localhost:8501", None),
        ("127.0.0.1:8501", None),
        ("[::1]:8501", None),
        ("MyMachine:8501", None),
        ("mymachine.", None),
        ("one.lab.example", None),
        (None, None),
        ("evil.example:8501", "foreign-host"),
        ("notmymachine", "foreign-host"),
        ("evil.example@localhost", "foreign-host"),
        ("localhost.evil.example", "foreign-host"),
        ("localhost:8501/x", "foreign-host"),
        ("", "foreign-host"),
    ],
)
def test_a_name_that_is_not_this_machines_is_turned_away(kind: str, host: str | None, why: str | None) -> None:
    """With DNS rebinding, Host and Origin are both the other site's name."""
    own = () if host is None else (f"http://{host}",)
    assert AT_HOME.refusal(handshake(host, *own, kind=kind)) == why


@pytest.mark.parametrize(
    ("scope", "why"),
    [
        (handshake("evil.example", kind="http"), "foreign-host"),
        (handshake("evil.example", "http://evil.example"), "foreign-host"),
        (handshake("localhost", "https://elsewhere.example"), "foreign-origin"),
    ],
)
def test_who_is_turned_away_does_not_reach_streamlit(scope: Message, why: str) -> None:
    away: Counter[str] = Counter()
    got: list[Message] = []

    async def app(_scope: Message, _receive: Any, _send: Any) -> None:
        raise AssertionError("it got through")

    async def take(message: Message) -> None:
        got.append(message)

    refusals = Refusals(lambda why, _scope: why, lambda why: away.update([why]))
    gate = WebSocketGate(app, BOUNDS, PlainQueue, refusals, AT_HOME)
    asyncio.run(gate(scope, asyncio.Queue().get, take))
    assert away == {why: 1}
    assert (got[0]["status"], got[1]["body"]) == (403, why.encode())

"""Other sites' pages, and names that another site points at this machine, are turned away before Streamlit."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from serving.http.access import Message, Refusals, Sites
from serving.http.websocket_gate import WebSocketGate
from tests.serving.http.sockets import BOUNDS, PlainQueue

pytestmark = pytest.mark.attack("cross-site")
ANY_NAME = Sites(origins=lambda: ["https://atlas.example"])
AT_HOME = Sites(hosts=lambda: ["mymachine", "*.lab.example"], origins=tuple)
FOREIGN = "https://elsewhere.example"
LONG = "https://" + "x" * 20_000


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
        (handshake("Localhost:8501", "http://localhost:8501"), None),
        (handshake(), None),  # no browser
        (handshake("atlas.example", "https://elsewhere.example"), "foreign-origin"),
        (handshake("atlas.example", "http://localhost:9999"), "foreign-origin"),
        (handshake("atlas.example", "http://127.0.0.1"), "foreign-origin"),
        (handshake("atlas.example", "http://0.0.0.0"), "foreign-origin"),
        (handshake("atlas.example", "null"), "foreign-origin"),
        (handshake("atlas.example", ""), "foreign-origin"),
        (handshake("atlas.example", LONG), "foreign-origin"),
        (handshake("atlas.example", "https://atlas.example", "https://elsewhere.example"), "foreign-origin"),
        (handshake(None, ""), "foreign-origin"),
        (
            handshake("atlas.example", "https://elsewhere.example", kind="http"),
            None,
        ),  # Streamlit sends no leave to read
    ],
)
def test_a_session_is_opened_by_the_servers_own_pages(scope: Message, why: str | None) -> None:
    assert ANY_NAME.refusal(scope) == why


def test_without_a_check_any_site_may() -> None:
    assert Sites().refusal(handshake("evil.example", FOREIGN)) is None


@pytest.mark.parametrize("kind", ["websocket", "http"])
@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("localhost:8501", None),
        ("127.0.0.1:8501", None),
        ("192.168.1.20", None),
        ("[::1]:8501", None),
        ("app.localhost", None),
        ("MyMachine:8501", None),
        ("mymachine.", None),
        ("one.lab.example", None),
        (None, None),
        ("evil.example:8501", "foreign-host"),
        ("lab.example", "foreign-host"),
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

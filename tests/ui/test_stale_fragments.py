"""A part of a page that was left asks in vain; whoever is there, or comes back, is heard."""

from __future__ import annotations

import asyncio

import pytest
from starlette.types import Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg

from ui.streamlit_internals.mailbox import Mailbox
from ui.streamlit_internals.stale_fragments import Asked, LeftPages


def ask(page: str, fragment: str = "") -> BackMsg:
    message = BackMsg()
    message.rerun_script.page_script_hash, message.rerun_script.fragment_id = page, fragment
    return message


def heartbeat() -> BackMsg:
    message = BackMsg()
    message.app_heartbeat = True
    return message


FOLLOWED_A_LINK = [ask(""), ask("one", "a part"), ask("two"), ask("one", "a part"), ask("two", "another")]
CAME_BACK = [ask("one"), ask("two"), ask("one"), ask("one", "a part"), heartbeat(), ask("two", "another")]
VISITS = [
    pytest.param(FOLLOWED_A_LINK, [3], id="a link is followed while a part asks"),
    pytest.param(CAME_BACK, [5], id="back again"),
    pytest.param([ask("one", "a part"), ask("two", "another")], [], id="nobody has said a page"),
]


@pytest.mark.parametrize(("sent", "late"), VISITS)
def test_only_what_a_page_asks_that_was_left_is_too_late(sent: list[BackMsg], late: list[int]) -> None:
    asked = Asked()
    assert [number for number, message in enumerate(sent) if asked.too_late(message)] == late


@pytest.mark.parametrize(("sent", "late"), VISITS)
def test_it_does_not_reach_the_app_from_oneself(sent: list[BackMsg], late: list[int]) -> None:
    """By the middleware; what is no message of Streamlit's is for Streamlit to refuse."""
    came: list[bytes] = [message.SerializeToString() for message in sent] + [b"\xff nonsense"]
    heard: list[bytes] = []

    async def app(_scope: Scope, receive: Receive, _send: Send) -> None:
        while (message := await receive())["type"] == "websocket.receive":
            heard.append(message["bytes"])

    frames = iter([{"type": "websocket.receive", "bytes": data} for data in came] + [{"type": "websocket.disconnect"}])

    async def receive() -> Message:
        return next(frames)

    async def send(_message: Message) -> None: ...

    asyncio.run(LeftPages(app)({"type": "websocket"}, receive, send))
    assert heard == [data for number, data in enumerate(came) if number not in late]


@pytest.mark.parametrize(("sent", "late"), VISITS)
def test_nor_where_strangers_visit(sent: list[BackMsg], late: list[int]) -> None:
    box, heard = Mailbox(downloads=2, most_bytes=2**20), []
    for message in sent:
        assert box.put(message.SerializeToString()) is None
        heard.append(box.take())
    assert heard == [None if n in late else message.SerializeToString() for n, message in enumerate(sent)]


def test_a_link_that_waits_to_be_followed_there_still_is() -> None:
    """Of runs that wait the last is kept: not the one of the page that was left."""
    box = Mailbox(downloads=2, most_bytes=2**20)
    for message in (ask("one", "a part"), ask("two"), ask("one", "a part")):
        assert box.put(message.SerializeToString()) is None
    link, nothing = box.take(), box.take()
    assert link is not None
    assert nothing is None
    asked = BackMsg.FromString(link).rerun_script
    assert (asked.page_script_hash, asked.fragment_id) == ("two", "")

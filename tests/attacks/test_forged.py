"""Whoever speaks the protocol may send anything: the session goes on or ends, and nobody else notices."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Iterator
from contextlib import AsyncExitStack, suppress
from typing import TypeVar
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from benchmarks.serving import Server
from benchmarks.visitors import Shown, Visitor, visit
from tests.attacks.forged import odd_runs, page_run, state, values, wrong_values
from ui.text.words import ENGLISH, load_words

pytestmark = pytest.mark.attack("forged messages")
CHAPTERS = ("sinusoidal-encoding", "transformer", "vision-transformer")
EACH = "ATTACK_CASES" in os.environ  # `make attacks` tries more, and looks each time what others see of it
CASES = int(os.environ.get("ATTACK_CASES", "5"))
NAMED = list(wrong_values())[:: 1 if EACH else 6]
FAILURE = load_words("common", ENGLISH)("failure")
SENTENCES = ("Hello there.", "Hello there. " * 400)  # the second is too long for an address
TIMEOUT = 120.0
Result = TypeVar("Result")


class Stage:
    """A server, somebody who looks at a page of it, and a session for each chapter in which others forge."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._runner = asyncio.Runner()
        self._sessions = AsyncExitStack()
        self._forgers: dict[str, Visitor] = {}
        self._whole: dict[str, Shown] = {}
        self._witness = self._run(self._enter())
        self._run(self._witness.open(CHAPTERS[0]))  # what is made once is made by now
        self._seen = self._run(self._witness.open(CHAPTERS[0]))
        assert self._seen.texts

    def close(self) -> None:
        with self._runner:
            self._run(self._sessions.aclose())

    def ids(self, chapter: str) -> list[str]:
        """Of the controls of a chapter, the same in every session."""
        self._run(self._forger(chapter))
        return self._whole[chapter].ids

    def attack(self, chapter: str, forge: list[BackMsg]) -> None:
        """Send all of this into a session that shows a chapter: it goes on, or ends."""
        try:
            self._run(self._attack(chapter, forge))
        except ConnectionClosed:
            del self._forgers[chapter]
        except BaseException:
            self._forgers.pop(chapter, None)  # what is left of this one is no other try's fault
            raise
        if EACH:
            self.check()

    def check(self) -> None:
        """Nobody else notices anything."""
        shown = self._run(self._witness.open(CHAPTERS[0]))
        assert (shown.texts, shown.alerts, shown.failed) == (self._seen.texts, self._seen.alerts, [])

    async def _attack(self, chapter: str, forge: list[BackMsg]) -> None:
        forger = await self._forger(chapter)
        for message in forge:
            await forger.send(message)
            # Nothing is heard of a part that is not there; its clicks go with the next run.
            got = await (forger.open(chapter) if message.rerun_script.fragment_id else forger.watch())
            assert got.texts or got.alerts, "a page, or a sentence"
            assert got.failed == [], "no visitor sees an exception"
        again = await forger.open(chapter)
        assert again.texts
        assert FAILURE not in again.alerts, "what was forged is over"

    async def _forger(self, chapter: str) -> Visitor:
        if chapter not in self._forgers:
            forger = await self._enter()
            self._whole[chapter] = await forger.open(chapter)
            self._forgers[chapter] = forger
        return self._forgers[chapter]

    async def _enter(self) -> Visitor:
        return await self._sessions.enter_async_context(visit(self._url, TIMEOUT))

    def _run(self, work: Awaitable[Result]) -> Result:
        async def within() -> Result:
            async with asyncio.timeout(TIMEOUT):
                return await work

        return self._runner.run(within())


@pytest.fixture(scope="module")
def stage(server: Server) -> Iterator[Stage]:
    made = Stage(server.url)
    yield made
    made.check()
    made.close()


@pytest.fixture(scope="module")
def ids(stage: Stage) -> dict[str, list[str]]:
    found = {chapter: stage.ids(chapter) for chapter in CHAPTERS}
    assert all(found.values())
    return found


def typed(chapter: str, ids: dict[str, list[str]], text: str) -> BackMsg:
    """What a reader sends, in all lines of a page that take a text: nothing odd, but something is kept of it."""
    return page_run(chapter, *[state(key, string_value=text) for key in ids[chapter] if key.endswith("-text")])


@pytest.mark.parametrize("what", NAMED)
def test_every_control_of_a_page_gets(what: str, stage: Stage, ids: dict[str, list[str]]) -> None:
    chapter = CHAPTERS[len(what) % len(CHAPTERS)]
    forged = page_run(chapter, *map(wrong_values()[what], ids[chapter]))
    stage.attack(chapter, [forged])


@pytest.mark.parametrize("sentence", SENTENCES)
def test_what_fails_is_over_at_the_next_run_though_this_was_typed_before(
    sentence: str, stage: Stage, ids: dict[str, list[str]]
) -> None:
    """What is kept beside a control, a sentence that goes along say, fails no run once the control is forgotten."""
    chapter = "transformer"
    stage.attack(
        chapter, [typed(chapter, ids, sentence), page_run(chapter, *map(wrong_values()["true"], ids[chapter]))]
    )


@pytest.mark.parametrize("what", odd_runs(""))
def test_asked_for(what: str, stage: Stage) -> None:
    stage.attack(CHAPTERS[0], [odd_runs(CHAPTERS[0])[what]])


@settings(max_examples=CASES, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_anything_in_any_order(data: st.DataObject, stage: Stage, ids: dict[str, list[str]]) -> None:
    chapter = data.draw(st.sampled_from(CHAPTERS))
    odd = st.sampled_from([*ids[chapter], "", "$$ID-0-None", "$$STREAMLIT_INTERNAL_KEY_x"])
    runs = st.builds(
        lambda states, fragment: page_run(chapter, *states, fragment=fragment),
        st.lists(odd.flatmap(values), max_size=6),
        st.sampled_from(["", "", "0123"]),
    )
    readers = st.sampled_from([typed(chapter, ids, sentence) for sentence in SENTENCES])
    stage.attack(chapter, data.draw(st.lists(runs | readers, min_size=1, max_size=4)))


@pytest.mark.parametrize("session", ["0", "../x", "a" * 400, "00000000-0000-4000-8000-000000000000"])
def test_the_session_of_somebody_else_is_asked_for(session: str, server: Server) -> None:
    """Whoever names a session that is not theirs gets one of their own."""
    address = f"ws://{urlsplit(server.url).netloc}/_stcore/stream"
    protocols = ["streamlit", "token", session]
    with (
        suppress(Exception),
        connect(address, subprotocols=protocols, max_size=None, open_timeout=60, close_timeout=0.1) as socket,
    ):  # type: ignore[arg-type]
        socket.send(page_run(CHAPTERS[0]).SerializeToString())
        answer = socket.recv(timeout=TIMEOUT)
        assert isinstance(answer, bytes)
        assert ForwardMsg.FromString(answer).new_session.initialize.session_id != session
        return

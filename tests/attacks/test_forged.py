"""Whoever speaks the protocol may send anything: the session goes on or ends, and nobody else notices."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from benchmarks.serving import Server
from benchmarks.visitors import Shown, visit
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


async def look(url: str, chapter: str) -> Shown:
    """What a new visitor sees of a page."""
    async with asyncio.timeout(TIMEOUT), visit(url, TIMEOUT) as visitor:
        return await visitor.open(chapter)


async def attack(url: str, chapter: str, forge: list[BackMsg]) -> None:
    """Send all of this into a session that shows a chapter: it goes on, or ends."""
    async with asyncio.timeout(TIMEOUT), visit(url, TIMEOUT) as forger:
        await forger.open(chapter)
        with suppress(ConnectionClosed):
            for message in forge:
                await forger.send(message)
                # Nothing is heard of a part that is not there; its clicks go with the next run.
                got = await (forger.open(chapter) if message.rerun_script.fragment_id else forger.watch())
                assert got.texts or got.alerts, "a page, or a sentence"
                assert got.failed == [], "no visitor sees an exception"
            again = await forger.open(chapter)
            assert again.texts
            assert FAILURE not in again.alerts, "what was forged is over"


@dataclass(frozen=True)
class Stage:
    """A server, what others see of its first chapter, and the controls of each chapter, the same in every session."""

    url: str
    seen: Shown
    ids: dict[str, list[str]]

    def attack(self, chapter: str, *forge: BackMsg) -> None:
        asyncio.run(attack(self.url, chapter, list(forge)))
        if EACH:
            self.check()

    def check(self) -> None:
        """Nobody else notices anything."""
        shown = asyncio.run(look(self.url, CHAPTERS[0]))
        assert (shown.texts, shown.alerts, shown.failed) == (self.seen.texts, self.seen.alerts, [])


@pytest.fixture(scope="module")
def stage(server: Server) -> Iterator[Stage]:
    shown = [asyncio.run(look(server.url, chapter)) for chapter in CHAPTERS]
    seen = asyncio.run(look(server.url, CHAPTERS[0]))  # what is made once is made by now
    made = Stage(server.url, seen, {chapter: each.ids for chapter, each in zip(CHAPTERS, shown, strict=True)})
    assert seen.texts
    assert all(made.ids.values())
    yield made
    made.check()


def typed(chapter: str, ids: list[str], text: str) -> BackMsg:
    """What a reader sends, in all lines of a page that take a text: nothing odd, but something is kept of it."""
    return page_run(chapter, *[state(key, string_value=text) for key in ids if key.endswith("-text")])


@pytest.mark.parametrize("what", NAMED)
def test_every_control_of_a_page_gets(what: str, stage: Stage) -> None:
    chapter = CHAPTERS[len(what) % len(CHAPTERS)]
    stage.attack(chapter, page_run(chapter, *map(wrong_values()[what], stage.ids[chapter])))


@pytest.mark.parametrize("sentence", SENTENCES)
def test_what_fails_is_over_at_the_next_run_though_this_was_typed_before(sentence: str, stage: Stage) -> None:
    """What is kept beside a control, a sentence that goes along say, fails no run once the control is forgotten."""
    chapter, ids = "transformer", stage.ids["transformer"]
    stage.attack(chapter, typed(chapter, ids, sentence), page_run(chapter, *map(wrong_values()["true"], ids)))


@pytest.mark.parametrize("what", odd_runs(""))
def test_asked_for(what: str, stage: Stage) -> None:
    stage.attack(CHAPTERS[0], odd_runs(CHAPTERS[0])[what])


@settings(max_examples=CASES, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_anything_in_any_order(data: st.DataObject, stage: Stage) -> None:
    chapter = data.draw(st.sampled_from(CHAPTERS))
    ids = stage.ids[chapter]
    odd = st.sampled_from([*ids, "", "$$ID-0-None", "$$STREAMLIT_INTERNAL_KEY_x"])
    runs = st.builds(
        lambda states, fragment: page_run(chapter, *states, fragment=fragment),
        st.lists(odd.flatmap(values), max_size=6),
        st.sampled_from(["", "", "0123"]),
    )
    readers = st.sampled_from([typed(chapter, ids, sentence) for sentence in SENTENCES])
    stage.attack(chapter, *data.draw(st.lists(runs | readers, min_size=1, max_size=4)))


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

"""Whoever speaks the protocol may send anything: the session goes on or ends, and nobody else notices."""

import asyncio
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from streamlit.proto.BackMsg_pb2 import BackMsg
from websockets.exceptions import ConnectionClosed

from benchmarks.serving import Server
from benchmarks.visitors import Shown, visit
from tests.attacks.over_http import odd_runs, page_run, state, values, wrong_values
from ui.text.words import ENGLISH, load_words

pytestmark = pytest.mark.attack("forged messages")
CHAPTERS = ("sinusoidal-encoding", "transformer", "vision-transformer")
CASES = int(os.environ.get("ATTACK_CASES", "3"))
EACH = CASES > 5  # `make attacks` tries more, and looks each time what others see of it
FAILURE = load_words("common", ENGLISH)("failure")
SENTENCES = ("Hello there.", "Hello there. " * 400)  # the second is too long for an address
TIMEOUT = 120.0


@dataclass(frozen=True)
class Stage:
    """A server, what others see of its first chapter, and the controls of each chapter, the same in every session."""

    url: str
    seen: Shown
    ids: dict[str, list[str]]

    def attack(self, chapter: str, *forge: BackMsg) -> None:
        """Send all of this into a session that shows a chapter: it goes on, or ends, and nobody else notices."""
        asyncio.run(asyncio.wait_for(attack(self.url, chapter, forge), TIMEOUT))
        if EACH:
            self.check()

    def check(self) -> None:
        shown = shown_page(self.url, CHAPTERS[0])
        assert (shown.texts, shown.alerts, shown.failed) == (self.seen.texts, self.seen.alerts, [])


def shown_page(url: str, chapter: str) -> Shown:
    """What a new visitor sees of a page."""

    async def opened() -> Shown:
        async with visit(url, TIMEOUT) as visitor:
            return await visitor.open(chapter)

    return asyncio.run(asyncio.wait_for(opened(), TIMEOUT))


async def attack(url: str, chapter: str, forge: Iterable[BackMsg]) -> None:
    """Send messages in one session, and in another one where it has ended."""
    messages = list(forge)
    while messages:
        async with visit(url, TIMEOUT) as forger:
            await forger.open(chapter)
            with suppress(ConnectionClosed):
                while messages:
                    message = messages.pop(0)
                    await forger.send(message)
                    # Nothing is heard of a part that is not there; its clicks go with the next run.
                    got = await (forger.open(chapter) if message.rerun_script.fragment_id else forger.watch())
                    assert got.texts or got.alerts, "a page, or a sentence"
                    assert got.failed == [], "no visitor sees an exception"
                again = await forger.open(chapter)
                assert again.texts
                assert FAILURE not in again.alerts, "what was forged is over"


@pytest.fixture(scope="module")
def stage(server: Server) -> Iterator[Stage]:
    ids = {chapter: shown_page(server.url, chapter).ids for chapter in CHAPTERS}
    made = Stage(server.url, shown_page(server.url, CHAPTERS[0]), ids)  # what is made once is made by now
    assert made.seen.texts
    assert all(ids.values())
    yield made
    made.check()


def typed(chapter: str, ids: list[str], text: str) -> BackMsg:
    """What a reader sends, in all lines of a page that take a text: nothing odd, but something is kept of it."""
    return page_run(chapter, *[state(key, string_value=text) for key in ids if key.endswith("-text")])


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_control_of_a_page_gets_wrong_values(chapter: str, stage: Stage) -> None:
    """Each value in a session of its own with `make attacks`, otherwise every sixth, one after the other."""
    forged = [page_run(chapter, *map(value, stage.ids[chapter])) for value in wrong_values().values()]
    for messages in [[each] for each in forged] if EACH else [forged[::6]]:
        stage.attack(chapter, *messages)


def test_pages_parts_and_addresses_that_are_not_there(stage: Stage) -> None:
    forged = odd_runs(CHAPTERS[0]).values()
    for messages in [[each] for each in forged] if EACH else [forged]:
        stage.attack(CHAPTERS[0], *messages)


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

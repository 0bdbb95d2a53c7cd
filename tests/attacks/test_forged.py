"""Whoever speaks the protocol may send anything: the session goes on or ends, and nobody else notices."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Iterator
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
from benchmarks.visitors import Shown, Visitor, visit
from tests.attacks.forged import odd_runs, page_run, values, wrong_values

pytestmark = pytest.mark.attack("forged messages")
CHAPTERS = ("sinusoidal-encoding", "transformer", "vision-transformer")
CASES = int(os.environ.get("ATTACK_CASES", "5"))  # `make attacks` tries more
NAMED = list(wrong_values())[:: 1 if "ATTACK_CASES" in os.environ else 6]
PATIENCE = 120.0


@dataclass
class Stage:
    """A server, and somebody who looks at a page of it while others forge."""

    url: str
    runner: asyncio.Runner
    witness: Visitor
    seen: Shown

    def attack(self, chapter: str, forge: list[BackMsg]) -> str:
        """Send all of this after opening a chapter; what came of it, in words."""
        got = self.runner.run(self._attack(chapter, forge))
        assert not isinstance(got, Shown) or (got.texts or got.alerts), "a page, or a sentence"
        shown = self.runner.run(within(self.witness.open(CHAPTERS[0])))
        assert (shown.texts, shown.alerts, shown.failed) == (self.seen.texts, self.seen.alerts, [])
        if not isinstance(got, Shown):
            return got
        assert got.failed == [], "no visitor sees an exception"
        return "a sentence on the page" if got.alerts else "the page goes on"

    async def _attack(self, chapter: str, forge: list[BackMsg]) -> Shown | str:
        async with visit(self.url, PATIENCE) as visitor:
            await within(visitor.open(chapter))
            try:
                for message in forge:
                    await visitor.send(message)
                return await within(visitor.watch())
            except ConnectionClosed as closed:
                return f"the session is closed ({closed.rcvd.code if closed.rcvd else 'without a word'})"

    def ids(self, chapter: str) -> list[str]:
        """Of the controls of a chapter, the same in every session."""

        async def look() -> Shown:
            async with visit(self.url, PATIENCE) as visitor:
                return await within(visitor.open(chapter))

        return self.runner.run(look()).ids


async def within(awaitable: Awaitable[Shown]) -> Shown:
    async with asyncio.timeout(PATIENCE):
        return await awaitable


@pytest.fixture(scope="module")
def stage(server: Server) -> Iterator[Stage]:
    with asyncio.Runner() as runner:
        session = visit(server.url, PATIENCE)
        witness = runner.run(session.__aenter__())
        runner.run(within(witness.open(CHAPTERS[0])))
        seen = runner.run(within(witness.open(CHAPTERS[0])))
        assert seen.texts
        yield Stage(server.url, runner, witness, seen)
        runner.run(session.__aexit__(None, None, None))


@pytest.fixture(scope="module")
def ids(stage: Stage) -> dict[str, list[str]]:
    found = {chapter: stage.ids(chapter) for chapter in CHAPTERS}
    assert all(found.values())
    return found


@pytest.mark.parametrize("what", NAMED)
def test_every_control_of_a_page_gets(
    what: str, stage: Stage, ids: dict[str, list[str]], record_property: pytest.RecordProperty
) -> None:
    chapter = CHAPTERS[len(what) % len(CHAPTERS)]
    forged = page_run(chapter, *map(wrong_values()[what], ids[chapter]))
    record_property("got", stage.attack(chapter, [forged]))


@pytest.mark.parametrize("what", odd_runs(""))
def test_asked_for(what: str, stage: Stage, record_property: pytest.RecordProperty) -> None:
    forged = [odd_runs(CHAPTERS[0])[what], page_run(CHAPTERS[0])]
    record_property("got", stage.attack(CHAPTERS[0], forged))


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
    stage.attack(chapter, [*data.draw(st.lists(runs, min_size=1, max_size=4)), page_run(chapter)])


@pytest.mark.parametrize("session", ["0", "../x", "a" * 400, "00000000-0000-4000-8000-000000000000"])
def test_the_session_of_somebody_else_is_asked_for(
    session: str, server: Server, record_property: pytest.RecordProperty
) -> None:
    """Whoever names a session that is not theirs gets one of their own."""
    address = f"ws://{urlsplit(server.url).netloc}/_stcore/stream"
    protocols = ["streamlit", "token", session]
    with suppress(Exception), connect(address, subprotocols=protocols, max_size=None, open_timeout=60) as socket:  # type: ignore[arg-type]
        socket.send(page_run(CHAPTERS[0]).SerializeToString())
        answer = socket.recv(timeout=PATIENCE)
        assert isinstance(answer, bytes)
        assert ForwardMsg.FromString(answer).new_session.initialize.session_id != session
        record_property("got", "a session of its own")
        return
    record_property("got", "no session")

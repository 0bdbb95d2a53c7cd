"""A real server with one slot, and real sessions: who waits sees a place in the queue, who leaves frees the slot."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.serving import running
from benchmarks.visitors import visit

TIMEOUT = 300.0


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT):
        while not true():
            await asyncio.sleep(0.05)


async def leave_and_be_followed(url: str) -> tuple[list[str], list[str]]:
    """Someone computes without end; someone else waits; the first closes the window. What the second was shown."""
    async with visit(url, TIMEOUT) as second:
        async with visit(url, TIMEOUT) as first:
            computing = asyncio.create_task(first.open("", stay="1"))
            await until(lambda: any("Computing" in text for text in first.shown.texts))
            waiting = asyncio.create_task(second.open(""))
            await until(lambda: bool(second.shown.alerts))
            assert not waiting.done()
            computing.cancel()
        async with asyncio.timeout(TIMEOUT):
            shown = await waiting
    return shown.alerts, shown.texts


@pytest.mark.attack("disorder")
def test_whoever_leaves_frees_the_slot(tmp_path: Path) -> None:
    settings = {"ATLAS_SLOTS": "1"}
    with running(tmp_path, "tests/serving/compute/one_slot.py", settings) as server:
        alerts, texts = asyncio.run(leave_and_be_followed(server.url))
    assert "number 1 in the queue" in alerts[0]
    assert texts[-1] == "served"

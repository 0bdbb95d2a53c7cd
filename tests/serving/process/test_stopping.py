"""Real servers: who leaves frees the slot, and a server that is told to stop leaves nothing behind."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from benchmarks.serving import HOSTED, running, start, wait_until_healthy
from benchmarks.visitors import visit
from ui.text.words import ENGLISH, load_words

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


async def request_and_stop(url: str, server: subprocess.Popen[bytes]) -> None:
    """Somebody waits for a translation, and sees that it is at work, when the signal comes."""
    translating = load_words("common", ENGLISH)("translating")
    async with visit(url, TIMEOUT) as visitor, asyncio.timeout(TIMEOUT):
        waiting = asyncio.create_task(visitor.open("transformer", **{"t-text": "Nobody will answer this."}))
        while not any(translating in text for text in visitor.shown.texts):
            await asyncio.sleep(0.05)
        server.terminate()
        await asyncio.to_thread(server.wait, TIMEOUT)
        waiting.cancel()


@pytest.mark.attack("disorder")
def test_told_to_stop_in_the_middle_of_a_computation(tmp_path: Path) -> None:
    """Its worker is stuck for good: nothing that ends by itself."""
    settings = {"ATLAS_WORKERS": "1", "ATLAS_STOP_SECONDS": "0.5"}
    process, url = start(tmp_path, HOSTED, settings)
    log = tmp_path / "server.log"
    workers: list[psutil.Process] = []
    try:
        wait_until_healthy(url, process, log, "/readyz")
        workers = psutil.Process(process.pid).children(recursive=True)
        assert workers
        max(workers, key=psutil.Process.create_time).suspend()  # the other one, if any, is what it was copied from
        asyncio.run(request_and_stop(url, process))
        assert psutil.wait_procs(workers, TIMEOUT)[1] == []
        assert process.returncode == -signal.SIGTERM
    finally:
        process.kill()
        for worker in workers:
            with suppress(psutil.NoSuchProcess):
                worker.kill()
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    events = {line["event"]: line for line in lines}
    assert events["stopping"]["running"] == 1
    assert events["stopped"]["finished"] is False

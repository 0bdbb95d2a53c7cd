"""Real servers: who leaves frees the slot, and a server that is told to stop leaves nothing behind."""

import asyncio
import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from benchmarks.serving import HOSTED, running, start, wait_until_healthy
from benchmarks.visitors import Shown, visit
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


async def wait_while_it_stops(url: str, server: subprocess.Popen[bytes], worker: psutil.Process) -> list[Shown]:
    """One computes and another waits when the signal comes; what each was shown once both were served."""
    texts = {"en": "He is calm.", "pt-BR": "He is at home."}
    async with AsyncExitStack() as stack, asyncio.timeout(TIMEOUT):
        visitors = {language: await stack.enter_async_context(visit(url, TIMEOUT)) for language in texts}
        worker.suspend()
        opening = []
        for language, visitor in visitors.items():
            page = visitor.open("transformer", **{"t-text": texts[language], "lang": language})
            opening.append(asyncio.create_task(page))
            words = load_words("common", language)("translating")
            await until(lambda shown=visitor, what=words: any(what in each for each in _texts(shown.shown)))  # type: ignore[misc]
        server.terminate()
        worker.resume()
        return list(await asyncio.gather(*opening))


def _texts(shown: Shown) -> list[str]:
    return [*shown.texts, *shown.alerts]


@contextmanager
def hosted(folder: Path, **settings: str) -> Iterator[tuple[subprocess.Popen[bytes], str, list[psutil.Process]]]:
    """A server with a worker, its address, and its processes, the newest of which is the worker; all end after it."""
    process, url = start(folder, HOSTED, {"ATLAS_WORKERS": "1", **settings})
    workers: list[psutil.Process] = []
    try:
        wait_until_healthy(url, process, folder / "server.log", "/readyz")
        workers = psutil.Process(process.pid).children(recursive=True)
        yield process, url, sorted(workers, key=psutil.Process.create_time)
    finally:
        process.kill()
        for worker in workers:
            with suppress(psutil.NoSuchProcess):
                worker.kill()


@pytest.mark.attack("disorder")
def test_open_pages_show_the_restart_and_are_served_before(tmp_path: Path) -> None:
    with hosted(tmp_path, ATLAS_SLOTS="1", ATLAS_STOP_SECONDS=str(TIMEOUT)) as (process, url, workers):
        shown = asyncio.run(wait_while_it_stops(url, process, workers[-1]))
        expected = {"en": "Il est calme", "pt-BR": "Il est chez lui"}
        for one, (language, translation) in zip(shown, expected.items(), strict=True):
            assert load_words("common", language).group("refused")["restarting"] in one.alerts
            assert any(translation in text for text in one.texts)
        assert process.wait(TIMEOUT) == -signal.SIGTERM


@pytest.mark.attack("disorder")
def test_told_to_stop_in_the_middle_of_a_computation(tmp_path: Path) -> None:
    """Its worker is stuck for good: nothing that ends by itself."""
    with hosted(tmp_path, ATLAS_STOP_SECONDS="0.5") as (process, url, workers):
        workers[-1].suspend()  # the other one, if any, is what it was copied from
        asyncio.run(request_and_stop(url, process))
        assert psutil.wait_procs(workers, TIMEOUT)[1] == []
        assert process.returncode == -signal.SIGTERM
    lines = [json.loads(line) for line in (tmp_path / "server.log").read_text().splitlines() if line.startswith("{")]
    events = {line["event"]: line for line in lines}
    assert events["stopping"]["running"] == 1
    assert events["stopped"]["finished"] is False

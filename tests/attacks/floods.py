"""One client that floods a hosted server, and how long health and a newcomer's own sentence take meanwhile.

`make attacks` runs them all; `python -m tests.attacks.floods NAME URL` is one such client.
"""

import asyncio
import json
import re
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg

from benchmarks.sampling import Tree
from benchmarks.serving import ROOT, Server
from benchmarks.visitors import visit
from tests.attacks.over_http import BINARY, FOREIGN, PING, frame, handshake, page_run, send_request, state
from tests.pages.extremes import WORD
from ui.text.words import ENGLISH, load_words

CHAPTER = "sinusoidal-encoding"
SECONDS = 6.0  # of each flood
WINDOWS, TIMEOUT = 12, 300.0
MAX_HEALTH = 0.25  # seconds
SLOWER = 2.0  # times that a newcomer may wait longer than in peace
FLOODER = "127.0.0.2"  # not the address of those who wait: the proxy limits each
SENTENCE = load_words("transformer", ENGLISH).label("text")
HARD = {"t-search": "beam 4", "t-tree": "own", "t-quantity": "contributions", "open-all": "true"}


async def socket(url: str, origin: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host = urlsplit(url).netloc
    reader, writer = await asyncio.open_connection(*host.split(":"), local_addr=(FLOODER, 0))
    writer.write(handshake("/_stcore/stream", host, f"Origin: {origin}\r\n"))
    return reader, writer


async def window(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A socket that has asked for a page."""
    reader, writer = await socket(url, url)
    await reader.readuntil(b"\r\n\r\n")
    writer.write(frame(BINARY, page_run(CHAPTER).SerializeToString()))
    return reader, writer


async def flood_frames(frames: bytes, url: str) -> None:
    """Send frames as fast as they are taken, and come again where the socket is closed."""
    while True:
        with suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await window(url)
            reading = asyncio.gather(reader.read(), return_exceptions=True)
            while not reading.done():
                writer.write(frames)
                await writer.drain()
            writer.close()
        await asyncio.sleep(0.01)


async def reruns(url: str) -> None:
    while True:
        with suppress(OSError, asyncio.IncompleteReadError):
            _reader, writer = await window(url)
            for number in count():
                clicks = [state(f"$$ID-{number}-{key}", trigger_value=True) for key in range(900)]
                writer.write(frame(BINARY, page_run(CHAPTER, *clicks).SerializeToString()))
                await writer.drain()
                await asyncio.sleep(1 / 28)


async def flood_handshakes(url: str) -> None:
    while True:
        with suppress(OSError):
            opened = await asyncio.gather(*[socket(url, FOREIGN) for _ in range(10)])
            await asyncio.gather(*[reader.read() for reader, _ in opened])
            for _, writer in opened:
                writer.close()


async def sends(messages: Callable[[int], Iterable[BackMsg]], url: str) -> None:
    async with visit(url, TIMEOUT, source=FLOODER) as visitor:
        await visitor.open(CHAPTER)
        for number in count():
            for message in messages(number):
                await visitor.send(message)
            await asyncio.sleep(0.1)


def longest(number: int) -> dict[str, str]:
    """The address of a text that nobody has translated, with what is costliest of it."""
    return HARD | {"t-text": f"{number} {time.monotonic()} " + WORD * 130}


async def opens(page: str, address: Callable[[int], dict[str, str]], types: bool, url: str) -> None:
    async def window_of(number: int) -> None:
        while True:
            async with visit(url, TIMEOUT, source=FLOODER) as visitor:
                await visitor.open(page, **address(number))
                while types:
                    await visitor.type(SENTENCE, longest(number)["t-text"])

    await asyncio.gather(*map(window_of, range(WINDOWS)))


FOLDERS = {"config": "num_labels", "tokenizer_config": "extra_ids"}


def write_folders(place: Path) -> None:
    """Folders of models that ask for much, each named as the file that does."""
    for name, field_name in FOLDERS.items():
        path = Path(shutil.copytree(ROOT / "assets" / "hub" / "writer-en", place / name)) / f"{name}.json"
        path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {field_name: 10**8}), encoding="utf-8")


FRAGMENTS = frame(BINARY, last=False) + frame(0, last=False) * 10_000 + frame(0)


def stopped(number: int) -> list[BackMsg]:
    return [page_run("transformer", query=urlencode(longest(number))), BackMsg(stop_script=True)]


def folder(number: int) -> dict[str, str]:
    return {"ml-model": [*FOLDERS, "writer-en"][number % 3], "open-all": "true"}


class Waits(NamedTuple):
    """The longest waits for health and at the metrics' address, newcomers' waits, cores used, and what was refused."""

    health: float
    apart: float
    newcomers: list[float]
    cores: float
    refused: int


FLOODS: dict[str, Callable[[str], Awaitable[None]]] = {
    "nothing": lambda _url: asyncio.sleep(TIMEOUT),
    "a window that sends pings without a pause": partial(flood_frames, frame(PING) * 10_000),
    "a window that sends empty fragments without a pause": partial(flood_frames, FRAGMENTS),
    "a window that sends empty messages without a pause": partial(flood_frames, frame(BINARY) * 10_000),
    "28 reruns a second with 900 clicks each, and nothing read": reruns,
    "ten handshakes at once from another site, again and again": flood_handshakes,
    "ten messages a second that empty all caches": partial(sends, lambda _: [BackMsg(clear_cache=True)]),
    "ten long computations a second, each stopped at once": partial(sends, stopped),
    "twelve windows that compute the longest texts with beam 4": partial(opens, "transformer", lambda _: HARD, True),
    "twelve windows that open the costliest link, again and again": partial(opens, "transformer", longest, False),
    "twelve windows that open folders of models that ask for much": partial(opens, "model-lab", folder, False),
}


def ask(url: str, over: threading.Event) -> float:
    """The longest wait for health until it is over."""
    most = 0.0
    while not over.is_set():
        begun = time.monotonic()
        assert send_request(url, "GET", "/healthz")[0] == 200
        most = max(most, time.monotonic() - begun)
        time.sleep(0.1)
    return most


async def newcomer(url: str) -> float:
    """Seconds until somebody new has the translation of a sentence of their own."""
    begun = time.monotonic()
    async with visit(url, TIMEOUT) as visitor:
        shown = await visitor.open("transformer", **{"t-text": f"He has {begun} books."})
        assert any("livres" in text for text in shown.texts)
    return time.monotonic() - begun


def count_refused(operations: str) -> int:
    """How often the server has turned somebody away."""
    text = send_request(operations, "GET", "/metrics")[2].decode()
    return sum(int(float(each)) for each in re.findall(r"^atlas_turned_away_total\{.*\} (\S+)$", text, flags=re.M))


def measure(server: Server, operations: str, flood: str) -> Waits:
    """What others wait, in peace or while one client floods."""
    over, used, newcomers = threading.Event(), Tree(server.pid), list[float]()
    command = [sys.executable, "-m", "tests.attacks.floods", flood, server.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as client, ThreadPoolExecutor() as threads:
        assert client.stdout is not None
        client.stdout.readline()  # it has imported what it needs
        refused, begun, cpu = count_refused(operations), time.monotonic(), used.cpu_seconds()
        checks = [threads.submit(ask, url, over) for url in (server.url, operations)]
        try:
            while time.monotonic() < begun + SECONDS:
                newcomers.append(asyncio.run(newcomer(server.url)))
                time.sleep(0.5)
            cores = (used.cpu_seconds() - cpu) / (time.monotonic() - begun)
            assert client.poll() is None, "the client gave up before it was over"
        finally:
            over.set()
            client.terminate()
        health, apart = (each.result() for each in checks)
    return Waits(health, apart, newcomers, cores, count_refused(operations) - refused)


def line(what: str, waits: Waits, peace: Waits) -> tuple[str, bool]:
    """A row of the table, and whether nobody waited too long."""
    slow, usual = statistics.median(waits.newcomers), statistics.median(peace.newcomers)
    holds = max(waits.health, waits.apart) <= MAX_HEALTH and slow <= SLOWER * usual
    found = (
        f"{waits.health:.2f} s | {waits.apart:.2f} s | {slow:.2f} s | {slow / usual:.1f} | {max(waits.newcomers):.2f} s"
    )
    return f"| {what} | {found} | {waits.cores:.0%} | {waits.refused:,} |", holds


HEAD = "| meanwhile | `/healthz` | `ATLAS_METRICS` | a sentence, median | times peace | longest | of a core | refused |"


def main(server: Server, operations: str) -> tuple[str, bool]:
    """The table of all floods, and whether all of them hold."""
    for _ in range(3):
        asyncio.run(newcomer(server.url))
    rows, whole, peace = [HEAD, f"| --- {'| --: ' * 7}|"], True, None
    for flood in FLOODS:
        waits = measure(server, operations, flood)
        row, holds = line(flood, waits, peace := peace or waits)
        rows.append(row)
        whole = whole and holds
        print(row, "" if holds else "TOO SLOW", flush=True)
        time.sleep(1)
    return "\n".join(rows), whole


if __name__ == "__main__":
    print(flush=True)
    asyncio.run(FLOODS[sys.argv[1]](sys.argv[2]))

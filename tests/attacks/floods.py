"""One client that floods a hosted server, and how long health and a newcomer's own sentence take meanwhile.

`make attacks` runs them all; `python -m tests.attacks.floods NAME URL` is one such client.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg

from benchmarks.sampling import Tree
from benchmarks.serving import HOSTED, ROOT, Server, free_port, running
from benchmarks.visitors import visit
from tests.attacks.forged import page_run, state
from tests.attacks.over_http import BINARY, FOREIGN, PING, frame, handshake, send_request
from tests.pages.extremes import WORD
from ui.text.words import ENGLISH, load_words

CHAPTER = "sinusoidal-encoding"
SECONDS = 10.0
WINDOWS = 12
TIMEOUT = 300.0
PAUSE = 0.1  # seconds between two questions for health
MAX_HEALTH = 0.25  # seconds
SLOWER = 2.0  # times that a newcomer may wait longer than in peace
FLOODER = "127.0.0.2"  # not the address of those who wait: the proxy limits each
BEGINS = b"flooding\n"
COMPUTE = load_words("common", ENGLISH)("compute")


async def window(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A socket that has asked for a page."""
    host = urlsplit(url).netloc
    reader, writer = await asyncio.open_connection(*host.split(":"), local_addr=(FLOODER, 0))
    writer.write(handshake("/_stcore/stream", host, f"Origin: {url}\r\n"))
    await reader.readuntil(b"\r\n\r\n")
    writer.write(frame(BINARY, page_run(CHAPTER).SerializeToString()))
    return reader, writer


async def flood_frames(first: bytes, more: bytes, url: str) -> None:
    """Send frames as fast as they are taken, and come again where the socket is closed."""
    while True:
        with suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await window(url)
            reading = asyncio.create_task(read_all(reader))
            writer.write(first)
            while not reading.done():
                writer.write(more)
                await writer.drain()
            writer.close()
        await asyncio.sleep(0.01)


async def read_all(reader: asyncio.StreamReader) -> None:
    with suppress(OSError):
        while await reader.read(2**16):
            pass


async def reruns(reads: bool, url: str) -> None:
    while True:
        with suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await window(url)
            reading = asyncio.create_task(read_all(reader)) if reads else None
            number = 0
            while reading is None or not reading.done():
                number += 1
                clicks = [state(f"$$ID-{number}-{key}", trigger_value=True) for key in range(900)]
                writer.write(frame(BINARY, page_run(CHAPTER, *clicks).SerializeToString()))
                await writer.drain()
                await asyncio.sleep(1 / 28)


async def flood_handshakes(origin: str, url: str) -> None:
    host = urlsplit(url).netloc

    async def one() -> None:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection(*host.split(":"), local_addr=(FLOODER, 0))
            writer.write(handshake("/_stcore/stream", host, f"Origin: {origin}\r\n"))
            await reader.read()
            writer.close()

    while True:
        await asyncio.gather(*[one() for _ in range(10)])


async def clears(url: str) -> None:
    async with visit(url, TIMEOUT) as visitor:
        await visitor.open(CHAPTER)
        while True:
            await visitor.send(BackMsg(clear_cache=True))
            await asyncio.sleep(0.1)


async def in_windows(one: Callable[[str, int], Awaitable[None]], url: str) -> None:
    await asyncio.gather(*[one(url, number) for number in range(WINDOWS)])


def longest(number: int, name: str) -> dict[str, str]:
    """The address of a text that nobody has translated, with what is costliest of it."""
    text = f"{number} {name} {time.monotonic()} " + WORD * 130
    return {"t-text": text, "t-search": "beam 4", "t-tree": "own", "t-quantity": "contributions", "open-all": "true"}


async def computes(url: str, number: int) -> None:
    async with visit(url, TIMEOUT, source=FLOODER) as visitor:
        while True:
            shown = await visitor.open("transformer", **longest(number, "computed"))
            if COMPUTE in shown.buttons:
                await visitor.click(COMPUTE)


async def opens_links(url: str, number: int) -> None:
    while True:
        async with visit(url, TIMEOUT, source=FLOODER) as visitor:
            await visitor.open("transformer", **longest(number, "linked"))


async def opens_folders(url: str, number: int) -> None:
    while True:
        async with visit(url, TIMEOUT, source=FLOODER) as visitor:
            await visitor.open("model-lab", **{"ml-model": FOLDERS[number % len(FOLDERS)], "open-all": "true"})


FOLDERS = ("many-labels", "many-extra-tokens", "good")


def write_folders(place: Path) -> None:
    """Folders of models that ask for much, beside one that does not."""
    for name in FOLDERS:
        shutil.copytree(ROOT / "assets" / "hub" / "writer-en", place / name)
    for name, file, field_name in ((0, "config.json", "num_labels"), (1, "tokenizer_config.json", "extra_ids")):
        path = place / FOLDERS[name] / file
        path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {field_name: 10**8}), encoding="utf-8")


FLOODS: dict[str, Callable[[str], Awaitable[None]]] = {
    "a window that sends pings without a pause": partial(flood_frames, b"", frame(PING) * 10_000),
    "a window that sends empty fragments without a pause": partial(
        flood_frames, frame(BINARY, last=False), frame(0, last=False) * 10_000
    ),
    "a window that sends empty messages without a pause": partial(flood_frames, b"", frame(BINARY) * 10_000),
    "28 reruns a second with 900 clicks each, and nothing read": partial(reruns, False),
    "ten handshakes at once from another site, again and again": partial(flood_handshakes, FOREIGN),
    "ten messages a second that empty all caches": clears,
    "twelve windows that compute the longest texts with beam 4": partial(in_windows, computes),
    "twelve windows that open the costliest link, again and again": partial(in_windows, opens_links),
    "twelve windows that open folders of models that ask for much": partial(in_windows, opens_folders),
}


@dataclass
class Waits:
    """Seconds that others waited while a client flooded."""

    health: list[float] = field(default_factory=list)
    apart: list[float] = field(default_factory=list)  # at the address of the metrics
    newcomers: list[float] = field(default_factory=list)
    cores: float = 0.0  # that the server used
    refused: int = 0  # messages, handshakes and connections


def ask(url: str, waits: list[float], over: threading.Event) -> None:
    """Ask for health until it is over."""
    while not over.is_set():
        begun = time.monotonic()
        status = send_request(url, "GET", "/healthz")[0]
        waits.append(time.monotonic() - begun)
        assert status == 200
        time.sleep(PAUSE)


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
    return sum(int(float(count)) for count in re.findall(r"^atlas_turned_away_total\{.*\} (\S+)$", text, flags=re.M))


def measure(server: Server, operations: str, seconds: float, flood: str = "") -> Waits:
    """What others wait, in peace or while one client floods."""
    waits, over, url = Waits(), threading.Event(), server.url
    requesting = [
        threading.Thread(target=ask, args=(address, found, over), daemon=True)
        for address, found in ((url, waits.health), (operations, waits.apart))
    ]
    command = [sys.executable, "-m", __spec__.name if __spec__ else __name__, flood, url]
    refused = count_refused(operations)
    client = subprocess.Popen(command, stdout=subprocess.PIPE) if flood else None
    if client is not None and client.stdout is not None:
        assert client.stdout.readline() == BEGINS, "the client has imported what it needs"
    used = Tree(server.pid)
    begun, cpu = time.monotonic(), used.cpu_seconds()
    try:
        for thread in requesting:
            thread.start()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            waits.newcomers.append(asyncio.run(newcomer(url)))
            time.sleep(0.5)
    finally:
        waits.cores = (used.cpu_seconds() - cpu) / (time.monotonic() - begun)
        waits.refused = count_refused(operations) - refused
        over.set()
        if client is not None:
            assert client.poll() is None, "the client gave up before it was over"
            client.terminate()
            client.wait(timeout=30)
        for thread in requesting:
            thread.join(TIMEOUT)
    return waits


def line(what: str, waits: Waits, peace: Waits) -> tuple[str, bool]:
    """A row of the table, and whether nobody waited too long."""
    health, slow = max(waits.health), statistics.median(waits.newcomers)
    holds = max(health, max(waits.apart)) <= MAX_HEALTH and slow <= SLOWER * statistics.median(peace.newcomers)
    seconds = [health, max(waits.apart), slow, max(waits.newcomers)]
    return (
        f"| {what} | {' | '.join(f'{one:.2f} s' for one in seconds)} | {waits.cores:.0%} | {waits.refused:,} |",
        holds,
    )


def table(lines: list[str]) -> str:
    head = "| meanwhile | `/healthz` | at `ATLAS_METRICS` | a sentence, median | longest | of a core | refused |"
    return "\n".join([head, "| --- | --: | --: | --: | --: | --: | --: |", *lines])


def main(seconds: float = SECONDS) -> tuple[list[str], bool]:
    """The lines of all floods, and whether all of them hold."""
    operations = f"127.0.0.1:{free_port()}"
    with tempfile.TemporaryDirectory() as name:
        write_folders(folders := Path(name) / "folders")
        settings = {"ATLAS_PROCESSES": "1", "ATLAS_WORKERS": "2", "ATLAS_METRICS": operations}
        settings["ATLAS_MODEL_FOLDERS"] = str(folders)
        with running(Path(name), HOSTED, settings) as server:
            while send_request(server.url, "GET", "/readyz")[0] != 200:
                time.sleep(0.5)
            for _ in range(3):
                asyncio.run(newcomer(server.url))
            peace = measure(server, f"http://{operations}", seconds)
            lines, whole = [line("nothing", peace, peace)[0]], True
            for flood in FLOODS:
                row, holds = line(flood, measure(server, f"http://{operations}", seconds, flood), peace)
                lines.append(row)
                whole = whole and holds
                print(row, "" if holds else "TOO SLOW", flush=True)
                time.sleep(2)
    return lines, whole


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(BEGINS.decode(), end="", flush=True)
        asyncio.run(FLOODS[sys.argv[1]](sys.argv[2]))
    else:
        main(*map(float, sys.argv[1:]))

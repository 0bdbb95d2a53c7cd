"""What a stranger with a socket can take, whether it is given back, and how long a newcomer waits meanwhile.

`python -m tests.attacks.soak` runs it all against a hosted server of its own; `make attacks` writes what it says.
"""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from benchmarks.memory import MB, resident
from benchmarks.serving import HOSTED, Server, running
from benchmarks.visitors import visit
from tests.attacks.forged import page_run
from tests.attacks.over_http import BOUNDARY, multipart, send_request

CHAPTER = "sinusoidal-encoding"
SETTINGS = {
    "ATLAS_WORKERS": "0",
    "ATLAS_SILENT_SECONDS": "10",
    "ATLAS_SLOW_SECONDS": "10",
    "STREAMLIT_SERVER_DISCONNECTED_SESSION_TTL": "5",
}
TIMEOUT = 300.0
LATEST = 40  # seconds until a server has tidied up, which it does every 30
TOLERANCE_MB = 1.0  # within which memory counts as given back


@dataclass(frozen=True)
class State:
    """What a server holds."""

    megabytes: float
    threads: int
    files: int
    cpu: float  # seconds, in all

    @classmethod
    def of(cls, pid: int) -> State:
        process = Path(f"/proc/{pid}")
        threads = next(line for line in (process / "status").read_text().splitlines() if line.startswith("Threads"))
        times = (process / "stat").read_text().rpartition(")")[2].split()[11:13]
        return cls(
            resident(pid) / MB,
            int(threads.split()[1]),
            len(list((process / "fd").iterdir())),
            sum(map(int, times)) / os.sysconf("SC_CLK_TCK"),
        )


@dataclass(frozen=True)
class Row:
    """One way to take much, and the server before, at the height of it, and after."""

    what: str
    before: State
    height: State
    after: State
    newcomer: float  # seconds until somebody else had a page, at the height
    settled: float  # seconds until the server was idle again


Attack = Callable[[Server, AsyncExitStack], Awaitable[None]]


async def clears(server: Server, stack: AsyncExitStack) -> None:
    """100 times the message that empties all caches"""
    visitor = await stack.enter_async_context(visit(server.url, TIMEOUT))
    await visitor.open(CHAPTER)
    for _ in range(100):
        await visitor.send(BackMsg(clear_cache=True))


async def sessions(server: Server, _stack: AsyncExitStack) -> None:
    """300 sessions opened and closed"""
    for _ in range(30):
        async with AsyncExitStack() as ten:
            visitors = [await ten.enter_async_context(visit(server.url, TIMEOUT)) for _ in range(10)]
            await asyncio.gather(*[visitor.open(CHAPTER) for visitor in visitors])


async def uploads(server: Server, stack: AsyncExitStack) -> None:
    """300 uploads of 2 MB that nobody uses"""
    token = send_request(server.url, "GET", "/_stcore/health")[1]["set-cookie"].split(";")[0].partition("=")[2]
    cookie = {"Cookie": f"_streamlit_xsrf={token}"}
    headers = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}", "X-Xsrftoken": token} | cookie
    visitor = await stack.enter_async_context(visit(server.url, TIMEOUT, headers=cookie))
    await visitor.open(CHAPTER)
    body = multipart(bytes(2 * 2**20))
    for number in range(300):
        path = f"/_stcore/upload_file/{visitor.session}/{number}"
        status, _, _ = await asyncio.to_thread(send_request, server.url, "PUT", path, body, headers)
        assert status == 204, status


async def half_open(server: Server, stack: AsyncExitStack) -> None:
    """500 connections that send half a request"""
    host, _, port = urlsplit(server.url).netloc.partition(":")
    for _ in range(500):
        half = stack.enter_context(socket.create_connection((host, int(port)), timeout=60))
        half.sendall(b"GET /_stcore/stream HTTP/1.1\r\nHost: x\r\nUpgrade: web")


async def silent(server: Server, stack: AsyncExitStack) -> None:
    """500 web sockets that ask for no page"""
    address = f"ws://{urlsplit(server.url).netloc}/_stcore/stream"
    for _ in range(500):
        with suppress(WebSocketException):
            await stack.enter_async_context(connect(address, proxy=None, open_timeout=60, close_timeout=1))


async def burst(server: Server, _stack: AsyncExitStack) -> None:
    """5,000 runs of a page asked for at once, and gone"""
    async with visit(server.url, TIMEOUT) as visitor:
        await visitor.open(CHAPTER)
        for number in range(5000):
            await visitor.send(page_run("transformer", query=f"t-text=I+am+{number}."))


async def drags(server: Server, stack: AsyncExitStack) -> None:
    """2,000 drags of a slider in a second"""
    visitor = await stack.enter_async_context(visit(server.url, TIMEOUT))
    slider = (await visitor.open(CHAPTER)).sliders[0]
    for number in range(2000):
        message = page_run(CHAPTER)
        message.rerun_script.widget_states.widgets.add(id=slider).double_array_value.data.append(
            2.0 * (number % 32 + 1)
        )
        await visitor.send(message)


async def slow(server: Server, stack: AsyncExitStack) -> None:
    """20 visitors who ask 50 times for a page of a megabyte and read nothing"""
    address = f"ws://{urlsplit(server.url).netloc}/_stcore/stream"
    for _ in range(20):
        reader = await stack.enter_async_context(
            connect(address, proxy=None, max_size=None, max_queue=1, open_timeout=60, close_timeout=1)
        )
        reader.transport.pause_reading()
        for number in range(50):
            await reader.send(page_run("transformer", query=f"t-text=I+was+{number}.").SerializeToString())


async def large(server: Server, _stack: AsyncExitStack) -> None:
    """100 messages of 40 MB"""
    for _ in range(100):
        with suppress(WebSocketException, OSError):
            async with visit(server.url, TIMEOUT) as visitor:
                await visitor.send(page_run("x" * 40 * 2**20))


ATTACKS: tuple[Attack, ...] = (clears, sessions, uploads, half_open, silent, drags, burst, slow, large)


@asynccontextmanager
async def newcomer(url: str) -> AsyncIterator[float]:
    begun = time.monotonic()
    async with visit(url, TIMEOUT) as visitor:
        shown = await visitor.open(CHAPTER)
        assert shown.texts
        yield time.monotonic() - begun


async def run(attack: Attack, server: Server) -> Row:
    """One attack, with somebody who comes at the height of it."""
    before = State.of(server.pid)
    async with AsyncExitStack() as stack:
        await attack(server, stack)
        height = State.of(server.pid)
        async with newcomer(server.url) as waited:
            pass
    settled = await idle(server.pid)
    return Row(_what(attack), before, height, await given_back(server.pid, before), waited, settled)


async def given_back(pid: int, before: State) -> State:
    """What a server holds once it is no more than before, or after as long as it may take to tidy up."""
    now = State.of(pid)
    for _ in range(LATEST):
        more = now.threads > before.threads or now.files > before.files
        if not more and now.megabytes < before.megabytes + TOLERANCE_MB:
            break
        await asyncio.sleep(1)
        now = State.of(pid)
    return now


async def idle(pid: int) -> float:
    """Seconds until the server uses less than a twentieth of a core."""
    begun = time.monotonic()
    while time.monotonic() - begun < TIMEOUT:
        cpu = State.of(pid).cpu
        await asyncio.sleep(1)
        if State.of(pid).cpu - cpu < 0.05:
            break
    return time.monotonic() - begun - 1


def table(lines: list[str]) -> str:
    """Before, at the height, and after everybody left."""
    head = "| what | a newcomer's page | idle after | memory, MB | threads | files |"
    return "\n".join([head, "| --- | --: | --: | --- | --- | --- |", *lines])


def _what(attack: Attack) -> str:
    return (attack.__doc__ or "").strip()


def _line(row: Row) -> str:
    def three(name: str) -> str:
        return ", ".join(f"{getattr(state, name):,.0f}" for state in (row.before, row.height, row.after))

    cells = (row.what, f"{row.newcomer:.1f} s", f"{row.settled:.0f} s", three("megabytes"), three("threads"))
    return f"| {' | '.join(cells)} | {three('files')} |"


async def soak(server: Server) -> tuple[list[str], bool]:
    """A line for each attack, and whether all of them could be tried to their end."""
    async with newcomer(server.url):  # the first page of all
        pass
    lines, whole = [], True
    for attack in ATTACKS:
        try:
            lines.append(_line(await run(attack, server)))
        except (AssertionError, OSError, WebSocketException) as error:  # OSError: too late, too
            lines.append(f"| {_what(attack)} | FAILED: {type(error).__name__} | | | | |")
            whole = False
        print(lines[-1], flush=True)
    return lines, whole


def main() -> tuple[list[str], bool]:
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), HOSTED, SETTINGS) as server:
        while send_request(server.url, "GET", "/readyz")[0] != 200:
            time.sleep(0.5)
        return asyncio.run(soak(server))


if __name__ == "__main__":
    main()

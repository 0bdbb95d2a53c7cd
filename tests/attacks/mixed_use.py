"""Twelve hours of use in thirty minutes: 2,000 visitors come and go while one client after another abuses the server.

`python -m tests.attacks.mixed_use [MINUTES VISITORS]` prints the table; `make attacks` writes it to docs/security.md.
"""

from __future__ import annotations

import asyncio
import io
import itertools
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image
from streamlit.proto.BackMsg_pb2 import BackMsg
from websockets.exceptions import WebSocketException

from benchmarks.load import LINE, TIMEZONE, sentences
from benchmarks.memory import MB, Tree
from benchmarks.serving import HOSTED, Server, running
from benchmarks.visitors import Shown, Visitor, visit
from serving.settings import HOSTED_CACHE_MB
from tests.attacks import soak
from tests.attacks.forged import page_run, state
from tests.attacks.over_http import BOUNDARY, multipart, send_request

MINUTES, VISITORS, SAMPLES = 30.0, 2000, 6
THINKING = 0.8  # seconds on average: a twenty-fourth of twenty
READ = (
    "attention-pooling",
    "queries-keys-values",
    "sinusoidal-encoding",
    "scoring-functions",
    "multi-head",
    "learning",
)
FIRST = 4  # visitors for each kind of stay before anything is measured
PICTURE = "vt-source=Upload"
SETTINGS = {name: value for name, value in soak.SETTINGS.items() if name != "ATLAS_WORKERS"}
CACHES_MB = HOSTED_CACHE_MB * 2**20 / MB  # which results may keep


@dataclass
class Use:
    """What the visitors of a server met."""

    url: str
    chance: random.Random = field(default_factory=lambda: random.Random(0))
    texts: Iterator[str] = field(default_factory=lambda: itertools.cycle(sentences()))
    runs: list[float] = field(default_factory=list)  # seconds each
    errors: Counter[str] = field(default_factory=Counter)

    async def timed(self, run: Awaitable[Shown]) -> Shown:
        """Count a run of a page, and the errors that it shows."""
        begun = time.monotonic()
        async with asyncio.timeout(soak.TIMEOUT):
            shown = await run
        self.runs.append(time.monotonic() - begun)
        self.errors.update(shown.failed)
        return shown

    async def think(self) -> None:
        await asyncio.sleep(self.chance.expovariate(1 / THINKING))


Stay = Callable[[Use, Visitor, str], Awaitable[None]]


async def send(visitor: Visitor, message: BackMsg) -> Shown:
    message.rerun_script.context_info.timezone = TIMEZONE
    await visitor.send(message)
    return await visitor.watch()


async def read(use: Use, visitor: Visitor, _token: str) -> None:
    """Open three chapters, and move sliders there."""
    for chapter in use.chance.sample(READ, 3):
        shown = await use.timed(visitor.open(chapter))
        for _ in range(2 if shown.sliders else 0):
            await use.think()
            slider = state(use.chance.choice(shown.sliders))
            slider.double_array_value.data.append(use.chance.randint(1, 8))
            await use.timed(send(visitor, page_run(chapter, slider)))
        await use.think()


async def translate(use: Use, visitor: Visitor, _token: str) -> None:
    """Type two sentences to translate."""
    shown = await use.timed(visitor.open("transformer"))
    while LINE not in shown.inputs:  # the server is busy, and says so
        await use.think()
        shown = await use.timed(visitor.open("transformer"))
    for _ in range(2):
        await use.think()
        await use.timed(visitor.type(LINE, next(use.texts)))


async def upload(use: Use, visitor: Visitor, token: str) -> None:
    """Bring a picture."""
    shown = await use.timed(visitor.open("vision-transformer", **dict([PICTURE.split("=")])))
    key = next(key for key in shown.ids if key.endswith("-vt-upload"))
    picture = io.BytesIO()
    Image.effect_noise((128, 128), 60).save(picture, "PNG")
    path = f"/_stcore/upload_file/{visitor.session}/{use.chance.randrange(2**32)}"
    headers = {"X-Xsrftoken": token, "Cookie": f"_streamlit_xsrf={token}"}
    headers["Content-Type"] = f"multipart/form-data; boundary={BOUNDARY}"
    body = multipart(picture.getvalue())
    status, _, _ = await asyncio.to_thread(send_request, use.url, "PUT", path, body, headers)
    use.errors.update([] if status == 204 else [f"an upload got {status}"])
    brought = state(key)
    file = brought.file_uploader_state_value.uploaded_file_info.add(file_id=path.rpartition("/")[2], name="picture.png")
    file.size = len(picture.getvalue())
    file.file_urls.file_id, file.file_urls.upload_url, file.file_urls.delete_url = file.file_id, path, path
    await use.timed(send(visitor, page_run("vision-transformer", brought, query=PICTURE)))


async def train(use: Use, visitor: Visitor, _token: str) -> None:
    """Train a small model, and leave before it has ended or not."""
    await use.timed(visitor.open("linear-attention", **{"la-section": "Recall"}))
    await use.timed(visitor.click("Train"))
    await asyncio.sleep(use.chance.uniform(0, 20))


STAYS: dict[Stay, int] = {read: 60, translate: 30, upload: 8, train: 2}
"""What visitors do, and how many of a hundred do it."""


async def come(use: Use, number: int, stay: Stay) -> None:
    """One visitor, from an address that nobody else has."""
    source = f"127.1.{number // 250}.{number % 250 + 1}"
    try:
        answer = await asyncio.to_thread(send_request, use.url, "GET", "/_stcore/health")
        token = answer[1]["set-cookie"].split(";")[0].partition("=")[2]
        cookie = {"Cookie": f"_streamlit_xsrf={token}"}
        async with visit(use.url, soak.TIMEOUT, TIMEZONE, cookie, source=source) as visitor:
            await stay(use, visitor, token)
    except (OSError, WebSocketException, KeyError, StopIteration, RuntimeError) as error:
        use.errors[f"{stay.__name__}: {type(error).__name__} {error}"[:100]] += 1


async def abuse(server: Server, rounds: Counter[str]) -> None:
    """Attack after attack, until it is cancelled."""
    for attack in itertools.cycle(soak.ATTACKS):
        async with AsyncExitStack() as stack:
            with suppress(OSError, WebSocketException, AssertionError):
                await attack(server, stack)
                rounds[attack.__name__] += 1
            await asyncio.sleep(5)


@dataclass(frozen=True)
class Held:
    """What a server and its workers hold."""

    megabytes: float
    processes: int
    threads: int
    files: int
    temporary: int  # files in its folder for temporary ones

    @classmethod
    def of(cls, pid: int, folder: Path) -> Held:
        one, tree = soak.State.of(pid), Tree(pid)
        temporary = sum(path.is_file() for path in folder.rglob("*"))
        return cls(tree.memory() / MB, tree.count(), one.threads, one.files, temporary)

    def no_more_than(self, before: Held) -> bool:
        """Return whether all that was taken since `before` is given back, but for cached results within their limit."""
        same = all(getattr(self, name) <= getattr(before, name) for name in ("threads", "files", "temporary"))
        return same and self.megabytes <= before.megabytes + CACHES_MB


def line(what: str, use: Use, held: Held) -> str:
    cells = (held.megabytes, held.processes, held.threads, held.files, held.temporary, len(use.runs))
    return f"| {what} | {' | '.join(f'{cell:,.0f}' for cell in cells)} |"


async def measure(server: Server, folder: Path, minutes: float, visitors: int) -> tuple[list[str], bool]:
    """The lines of the table, and whether nobody met an error and everything was given back."""
    use, rounds = Use(server.url), Counter[str]()
    first = [stay for stay in STAYS for _ in range(FIRST)]
    await asyncio.gather(*[come(use, visitors + number, stay) for number, stay in enumerate(first)])
    await asyncio.sleep(60)  # until what was trained is over
    before = Held.of(server.pid, folder)
    lines = [line("the first visitors left", use, before)]
    print(lines[-1], flush=True)
    begun, abusing = time.monotonic(), asyncio.create_task(abuse(server, rounds))
    arrivals = sorted(use.chance.uniform(0, 60 * minutes) for _ in range(visitors))
    marks = [60 * minutes * (number + 1) / SAMPLES for number in range(SAMPLES)]
    stays = use.chance.choices(list(STAYS), list(STAYS.values()), k=visitors)
    here: set[asyncio.Task[None]] = set()
    for number, at in enumerate([*arrivals, 60 * minutes]):
        await asyncio.sleep(max(0.0, begun + at - time.monotonic()))
        while marks and at >= marks[0]:
            minute, held = marks.pop(0) / 60, await asyncio.to_thread(Held.of, server.pid, folder)
            lines.append(line(f"after {minute:.0f} minutes", use, held))
            print(lines[-1], dict(use.errors), flush=True)
        if number < visitors:
            here.add(task := asyncio.create_task(come(use, number, stays[number])))
            task.add_done_callback(here.discard)
    await asyncio.gather(*here)
    abusing.cancel()
    after = Held.of(server.pid, folder)
    for _ in range(4 * soak.LATEST):
        if after.no_more_than(before):
            break
        await asyncio.sleep(1)
        after = Held.of(server.pid, folder)
    lines.append(line("everybody left", use, after))
    print(lines[-1], dict(use.errors), flush=True)
    return [*lines, "", summary(use, visitors, rounds)], not use.errors and after.no_more_than(before)


def summary(use: Use, visitors: int, rounds: Counter[str]) -> str:
    """What the visitors waited and met, in a sentence."""
    runs = sorted(use.runs)
    met = "; ".join(f"{count} times {name}" for name, count in use.errors.items()) or "none"
    return (
        f"{visitors:,} visitors, {len(runs):,} runs of pages: median {statistics.median(runs):.2f} s, 95th percentile "
        f"{runs[int(0.95 * (len(runs) - 1))]:.2f} s. Errors: {met}. Attacks meanwhile: {rounds.total()}."
    )


def table(lines: list[str]) -> str:
    head = "| when | memory, MB | processes | threads | open files | temporary files | runs of pages |"
    return "\n".join([head, "| --- | --: | --: | --: | --: | --: | --: |", *lines])


def main(minutes: float = MINUTES, visitors: float = VISITORS) -> tuple[list[str], bool]:
    with (
        tempfile.TemporaryDirectory() as log,
        tempfile.TemporaryDirectory() as temporary,
        running(Path(log), HOSTED, SETTINGS | {"TMPDIR": temporary}) as server,
    ):
        while send_request(server.url, "GET", "/readyz")[0] != 200:
            time.sleep(0.5)
        return asyncio.run(measure(server, Path(temporary), minutes, int(visitors)))


if __name__ == "__main__":
    print(table(main(*map(float, sys.argv[1:]))[0]))

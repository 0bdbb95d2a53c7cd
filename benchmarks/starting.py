"""From starting a server to its first chapter painted, and what it holds in memory; beside the least Streamlit app."""

from __future__ import annotations

import os
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from benchmarks.browsing import Visitor, chromium, visit
from benchmarks.report import Row
from benchmarks.sampling import MB, resident
from benchmarks.serving import ROOT, Server, running

EMPTY = "benchmarks/peers/empty.py"
CHAPTERS = ("home", "transformer")
TARGET = 5.0  # seconds to the first chapter
SESSIONS = 8
QUICK = {"samples": 1, "chapters": ("sinusoidal-encoding",)}

# The script has run to its end, its title stands there, and no placeholder is left in the window. Those further
# down are Streamlit's, for elements whose script a visitor's browser has still to load.
PAINTED = """() => {
    const inWindow = ({ top, bottom, height }) => height > 0 && bottom > 0 && top < window.innerHeight;
    const seen = selector => [...document.querySelectorAll(selector)].some(e => inWindow(e.getBoundingClientRect()));
    return document.querySelector("[data-testid=stApp]")?.dataset.testScriptState === "notRunning"
        && seen("h1") && !seen("[data-testid=stSkeleton]");
}"""


@dataclass(frozen=True)
class Start:
    """One start of a server: seconds to its first visitor's page and to the next one's, and its memory in MB."""

    first: float
    next: float
    held: float


def measure(samples: int = 4, chapters: Sequence[str] = CHAPTERS) -> list[Row]:
    """Seconds and megabytes. Cold: the files of Python and of this app are out of memory first, where that can be.

    Raises:
        RuntimeError: if there is no Chromium, or a server does not start.
    """
    rows = []
    with sync_playwright() as playwright, chromium(playwright) as browser:
        for chapter in chapters:
            cold = can_forget_files()
            colds = [_pair(browser, chapter, cold=True) for _ in range(max(1, samples // 2))] if cold else []
            warms = [_pair(browser, chapter, cold=False) for _ in range(samples)]
            rows += start_rows(chapter, colds, warms)
        rows.append(_session_row(browser, chapters[-1], samples))
    return rows


Pair = tuple[Start, Start]  # ours, and the empty app's


def start_rows(chapter: str, colds: Sequence[Pair], warms: Sequence[Pair]) -> list[Row]:
    def row(what: str, unit: str, name: str, pairs: Sequence[Pair], target: float | None = None) -> Row:
        ours, peer = (tuple(getattr(pair[i], name) for pair in pairs) for i in (0, 1))
        note = "" if pairs else "files cannot be put out of memory here"
        return Row(f"{chapter}: {what}", unit, ours, "an empty app", peer, target, note=note)

    return [
        row("server start to painted, files out of memory", "s", "first", colds),
        row("server start to painted", "s", "first", warms, TARGET),
        row("the next visitor's", "s", "next", warms),
        row("memory after the first visitor", "MB", "held", warms),
    ]


def _pair(browser: Browser, chapter: str, cold: bool) -> Pair:
    path = "" if chapter == "home" else f"/{chapter}"
    return _start(browser, "app.py", path, cold), _start(browser, EMPTY, "", cold)


def _start(browser: Browser, script: str, path: str, cold: bool) -> Start:
    if cold:
        forget_files()
    begun = time.perf_counter()
    with _server(script) as server:
        with _painted(browser, f"{server.url}{path}"):
            first = time.perf_counter() - begun
        again = time.perf_counter()
        with _painted(browser, f"{server.url}{path}"):
            second = time.perf_counter() - again
        return Start(first, second, resident(server.pid) / MB)


def _session_row(browser: Browser, chapter: str, samples: int) -> Row:
    def growth(script: str, path: str) -> tuple[float, ...]:
        found = []
        for _ in range(max(1, samples // 2)):
            with _server(script) as server, ExitStack() as open_pages:
                open_pages.enter_context(_painted(browser, f"{server.url}{path}"))
                before = resident(server.pid)
                for _ in range(SESSIONS):
                    open_pages.enter_context(_painted(browser, f"{server.url}{path}"))
                found.append((resident(server.pid) - before) / SESSIONS / MB)
        return tuple(found)

    what = f"{chapter}: memory of each open session"
    return Row(what, "MB", growth("app.py", f"/{chapter}"), "an empty app", growth(EMPTY, ""), headline=True)


@contextmanager
def _server(script: str) -> Iterator[Server]:
    with tempfile.TemporaryDirectory() as log, running(Path(log), script) as server:
        yield server


@contextmanager
def _painted(browser: Browser, url: str) -> Iterator[Visitor]:
    """A visitor whose page is painted; it stays open."""
    with visit(browser, url) as visitor:
        visitor.page.wait_for_function(PAINTED, timeout=300_000)
        visitor.page.evaluate("() => atlas.nextFrame().then(atlas.nextFrame)")
        yield visitor


def can_forget_files() -> bool:
    return hasattr(os, "posix_fadvise")


def forget_files() -> None:
    """Put the files of the app and of the installed packages out of memory, as if they had not been read for days.

    What another process has mapped stays.
    """
    if hasattr(os, "sync"):
        os.sync()  # only what is on the disk already can be given up
    for folder in {
        Path(sysconfig.get_path("purelib")),
        ROOT / "assets",
        ROOT / "ui",
        ROOT / "viz_core",
        ROOT / "pages",
    }:
        for path in folder.rglob("*"):
            if path.is_file():
                with path.open("rb") as file:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

"""A server's start to its first page, and every chapter on a warm one: opened by someone new, gone to, gone back to.

Beside an empty app, and one of Streamlit's own parts alone with as many elements as a chapter has. And what moves on a
page while it loads.
"""

import asyncio
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks import visitors
from benchmarks.report import Row
from benchmarks.serving import Visitor, chromium, running, visit
from ui.chapter.contents import all_chapters, all_pages
from ui.text.words import ENGLISH, load_words

QUICK = {"samples": 1, "chapters": ("sinusoidal-encoding",)}
QUIET = 1.0  # seconds in which nothing on the page changes
REST = 1.0  # seconds in which a server ends what it does for the visitor before
BETWEEN = 3  # chapters between two visits to the peers
WALKS = 2
TIMEOUT = 120.0
EMPTY = "benchmarks/peers/empty.py"
FURNISHED = "benchmarks/peers/furnished.py"
_EMPTY = "an empty app, settled"
_FURNISHED = "as many elements of Streamlit's own, settled"
START = 5.0  # seconds
SETTLED, FIRST_PICTURE = 1.6, 2.5  # times an empty app's
BESIDE_FURNISHED = 1.5  # times
GOING, GOING_BACK = 1.5, 1.0  # seconds
WORDS = 1.0  # seconds, of home: its words are its first picture
WIDTHS = 1400, 390  # pixels
SHIFT = 0.1  # sum of layout-shift scores without any input (web.dev/cls)


def measure(samples: int = 5, chapters: Sequence[str] | None = None) -> list[Row]:
    """Seconds, until a picture shows in the window, and until nothing on the page changes any more.

    The servers have answered every page once; the visitor's browser knows nothing. The peers are visited in turns with
    the chapters: a machine is not as fast all the time. Each number is told as it comes. RuntimeError if there is no
    Chromium, or a server does not start.
    """
    pages, chapters = tuple(chapters or all_pages()), tuple(chapters or all_chapters())
    opened: dict[str, list[tuple[float, float]]] = {name: [] for name in (EMPTY, FURNISHED, *chapters)}
    with ExitStack() as stack:
        logs = [Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(3)]
        servers = map(running, logs, ("app.py", EMPTY, FURNISHED))
        ours, *peers = (stack.enter_context(server).url for server in servers)
        asyncio.run(_answer_once(ours, chapters))
        browser = stack.enter_context(chromium(stack.enter_context(sync_playwright())))
        addresses = dict(zip((EMPTY, FURNISHED), peers, strict=True)) | {
            name: _address(ours, name) for name in chapters
        }
        for url in peers:
            _opened(browser, url)
        for _ in range(samples):
            for place, name in enumerate(chapters):
                for each in (*((EMPTY, FURNISHED) if place % BETWEEN == 0 else ()), name):
                    time.sleep(REST)
                    opened[each].append(_opened(browser, addresses[each]))
                    _tell(f"a visit to {each}", opened[each][-1])
        shifts = {width: _shifts(browser, ours, pages, width) for width in WIDTHS}
        starts = tuple(_started(browser) for _ in range(WALKS))
        walks = [_walk(browser, ours, chapters) for _ in range(WALKS)]
    pictured, settled = ({name: tuple(each[part] for each in opened[name]) for name in chapters} for part in (0, 1))
    empty, furnished = (tuple(last for _, last in opened[peer]) for peer in (EMPTY, FURNISHED))
    going, back = (
        {name: tuple(walk[name][part] for walk in walks) for name in chapters if name != "home"} for part in (0, 1)
    )
    return [
        Row("home: server start to first picture", "s", starts, target=START),
        *([Row("home: request to words", "s", pictured["home"], target=WORDS)] if "home" in pictured else []),
        *_rows("a visit, settled", settled, SETTLED, _EMPTY, empty),
        Row(_FURNISHED, "s", furnished, _EMPTY, empty),
        _rows("a visit, first picture", pictured, FIRST_PICTURE, _EMPTY, empty)[0],
        *_rows("a visit, first picture", pictured, BESIDE_FURNISHED, _FURNISHED, furnished),
        *_rows("going there, settled", going, GOING),
        *_rows("going back, settled", back, GOING_BACK),
        *_shift_rows(shifts),
    ]


def _shift_rows(shifts: Mapping[int, Mapping[str, tuple[float, ...]]]) -> list[Row]:
    return [
        row
        for width, found in shifts.items()
        for row in _rows(f"layout shift, {width} px", found, SHIFT, unit="score", which="the chapter that shifts most")
    ]


def _shifts(browser: Browser, url: str, pages: Sequence[str], width: int) -> dict[str, tuple[float, ...]]:
    """What moves on each page while it loads, in a window of this width."""
    found = {}
    for name in pages:
        with visit(browser, _address(url, name), animated=False, width=width) as visitor:
            _settled(visitor)
            found[name] = (round(float(visitor.page.evaluate("watch.shift")), 4),)
    return found


def _rows(
    what: str,
    found: Mapping[str, tuple[float, ...]],
    target: float,
    peer: str = "",
    peers: tuple[float, ...] = (),
    unit: str = "s",
    which: str = "the slowest chapter",
) -> list[Row]:
    """The slowest chapter, or which has most, which must meet the target, and every chapter by itself."""

    def row(title: str, ours: tuple[float, ...], target: float | None) -> Row:
        return Row(f"{title}: {what}", unit, ours, peer, peers, target, relative=bool(peers and target))

    each = [row(name, ours, None) for name, ours in found.items()]
    slowest = max(found, key=lambda name: sorted(found[name])[len(found[name]) // 2])
    return [row(f"{which} ({slowest})", found[slowest], target), *each]


async def _answer_once(url: str, chapters: Sequence[str]) -> None:
    """Ask for all of every chapter, also for what a browser would ask for only once it comes near the window."""
    async with visitors.visit(url) as visitor:
        for name in chapters:
            await visitor.open("" if name == "home" else name)


def _started(browser: Browser) -> float:
    """Seconds from the start of a server to the first picture of its home page."""
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as log, running(Path(log), "app.py") as server:
        return time.perf_counter() - begun + _opened(browser, server.url)[0]


def _tell(what: str, seconds: Iterable[float]) -> None:
    print(f"  {what}: {', '.join(f'{each:.2f}' for each in seconds)} s", flush=True)


def _address(url: str, chapter: str) -> str:
    return url if chapter == "home" else f"{url}/{chapter}"


def _opened(browser: Browser, url: str) -> tuple[float, float]:
    """Seconds since the address was asked for: the first picture, and the last change."""
    with visit(browser, url, animated=False) as visitor:
        return _settled(visitor)


def _walk(browser: Browser, url: str, chapters: Sequence[str]) -> dict[str, tuple[float, float]]:
    """From home to each chapter and back, by the sidebar; then each once more."""
    with visit(browser, url, animated=False) as visitor:
        _settled(visitor)
        first = {name: _go(visitor, name) for name in chapters if name != "home"}
        _go(visitor, "home")
        found = {name: (seconds, _go(visitor, name)) for name, seconds in first.items()}
    for name, seconds in found.items():
        _tell(f"going to {name}, and back", seconds)
    return found


def _go(visitor: Visitor, chapter: str) -> float:
    """Seconds from the click to the last change."""
    words = load_words(chapter, ENGLISH)
    link = visitor.page.get_by_test_id("stSidebarNavLink").filter(has_text=words.menu).first
    link.evaluate("link => { watch.restart(); link.click(); }")
    _wait(visitor.page, "title => document.querySelector('h1')?.textContent.trim() === title", words.title)
    return _settled(visitor)[1]


def _settled(visitor: Visitor) -> tuple[float, float]:
    _wait(visitor.page, "quiet => watch.quietFor(quiet)", QUIET)
    first, last = visitor.page.evaluate("[watch.picture, watch.last]")
    return (last if first is None else first) / 1000, last / 1000


def _wait(page: Page, there: str, argument: object) -> None:
    page.wait_for_function(there, arg=argument, timeout=1000 * TIMEOUT, polling=100)

"""What links cost before anybody clicks: processor seconds of a hosted server, for every page at its extremes."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.sampling import Tree
from benchmarks.serving import HOSTED, Server, running
from benchmarks.visitors import visit
from tests.attacks.over_http import send_request
from tests.pages.extremes import links
from ui.chapter.contents import all_pages
from ui.text.words import ENGLISH, load_words

SECONDS = 2.0
SHOWN = 10
TIMEOUT = 120.0
_QUIET = 0.05  # processor seconds of a server that does nothing, in `_STEP`
_STEP = 0.25  # seconds
_COMPUTE = load_words("common", ENGLISH)("compute")


class Cost(NamedTuple):
    """What a link cost, and whether something waits for a click."""

    page: str
    which: str
    seconds: float
    waits: bool

    @property
    def row(self) -> str:
        return f"| {self.page}, {self.which} | {self.seconds:.1f} s | {'yes' if self.waits else 'no'} |"


class Links:
    """Opens links, each in a window of its own, and counts what the server and its workers need for them."""

    def __init__(self, server: Server) -> None:
        self._url, self._tree = server.url, Tree(server.pid)
        self.costs: list[Cost] = []

    def warm(self, page: str) -> None:
        """Open a page once: what a process imports for it, it imports once."""
        asyncio.run(self._visit(page, {"open-all": "true"}))

    def all_of(self, page: str) -> None:
        """Open a page at both extremes; the last link of each has all of its controls."""
        for largest, which in ((True, "largest"), (False, "smallest")):
            for _ in links(partial(self._open, page, which), largest):
                pass

    def _open(self, page: str, which: str, address: Mapping[str, str]) -> Iterable[tuple[str, Any]]:
        begun = self._when_quiet()
        shown = asyncio.run(self._visit(page, address))
        assert not shown.failed, (page, address, shown.failed)
        seconds = self._when_quiet() - begun
        what = f"{which} values" if len(address) > 1 else "as it opens"
        self.costs.append(Cost(page, what, seconds, _COMPUTE in shown.buttons))
        return shown.controls

    async def _visit(self, page: str, address: Mapping[str, str]) -> Any:
        async with visit(self._url, TIMEOUT) as visitor:
            return await visitor.open("" if page == "home" else page, **address)

    def _when_quiet(self) -> float:
        """Processor seconds until now, once nothing more is computed."""
        seconds = self._tree.cpu_seconds()
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            time.sleep(_STEP)
            now = self._tree.cpu_seconds()
            if now - seconds < _QUIET:
                return now
            seconds = now
        return seconds


def table(costs: Iterable[Cost]) -> str:
    """The costliest links, each page and kind once."""
    most = dict[tuple[str, str], Cost]()
    for one in sorted(costs, key=lambda one: one.seconds):
        most[one.page, one.which] = one
    ranked = sorted(most.values(), key=lambda one: -one.seconds)[:SHOWN]
    return "\n".join(
        ["| link | costs | the rest waits for a click |", "| --- | --: | --- |", *(one.row for one in ranked)]
    )


def main(*pages: str) -> tuple[str, bool]:
    """The table of the costliest links, and whether none costs more than it may."""
    with tempfile.TemporaryDirectory() as name, running(Path(name), HOSTED) as server:
        while send_request(server.url, "GET", "/readyz")[0] != 200:
            time.sleep(0.5)
        opened = Links(server)
        for page in pages or all_pages():
            opened.warm(page)
            opened.all_of(page)
            print(*(one.row for one in opened.costs if one.page == page), sep="\n", flush=True)
    return table(opened.costs), all(one.seconds <= SECONDS for one in opened.costs)


if __name__ == "__main__":
    print(*main(*sys.argv[1:]))

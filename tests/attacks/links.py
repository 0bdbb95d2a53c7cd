"""What links cost before anybody clicks: processor seconds of a hosted server, for every page at its extremes."""

import asyncio
import time
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from benchmarks.sampling import Tree
from benchmarks.serving import Server
from benchmarks.visitors import Shown, visit
from tests.pages.extremes import links
from ui.chapter.contents import all_pages
from ui.text.words import ENGLISH, load_words

SECONDS = 2.0
TIMEOUT = 120.0
_STEP, _QUIET = 0.25, 0.05  # seconds, and processor seconds in them of a server that does nothing
_COMPUTE = load_words("common", ENGLISH)("compute")


async def shown_page(url: str, page: str, address: Mapping[str, str]) -> Shown:
    async with visit(url, TIMEOUT) as visitor:
        return await visitor.open("" if page == "home" else page, **address)


def when_quiet(used: Tree) -> float:
    """Processor seconds until now, once nothing more is computed."""
    end, seconds, now = time.monotonic() + TIMEOUT, -1.0, used.cpu_seconds()
    while now - seconds >= _QUIET and time.monotonic() < end:
        time.sleep(_STEP)
        seconds, now = now, used.cpu_seconds()
    return now


def main(server: Server) -> tuple[str, bool]:
    """The table of the costliest links, and whether none costs more than it may."""
    used, costs = Tree(server.pid), dict[str, tuple[float, bool]]()

    def opened(page: str, which: str, address: Mapping[str, str]) -> Iterable[tuple[str, Any]]:
        begun = when_quiet(used)
        shown = asyncio.run(shown_page(server.url, page, address))
        assert not shown.failed, (page, address, shown.failed)
        what = f"{page}, {which} values" if len(address) > 1 else f"{page}, as it opens"
        cost = when_quiet(used) - begun, _COMPUTE in shown.buttons
        costs[what] = max(cost, costs.get(what, cost))
        return shown.controls

    for page in all_pages():
        asyncio.run(
            shown_page(server.url, page, {"open-all": "true"})
        )  # what a process imports for it, it imports once
        for largest in (True, False):  # the last link of each has all controls of the page
            for _ in links(partial(opened, page, "largest" if largest else "smallest"), largest):
                pass
    rows = [f"| {what} | {costs[what][0]:.1f} s | {'yes' if costs[what][1] else 'no'} |" for what in costs]
    rows.sort(key=lambda row: -float(row.split(" | ")[1].removesuffix(" s")))
    head = "| link | costs | the rest waits for a click |\n| --- | --: | --- |\n"
    return head + "\n".join(rows[:10]), all(seconds <= SECONDS for seconds, _ in costs.values())

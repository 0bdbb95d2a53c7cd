"""Try every attack with many cases, flood a server, open costly links: `make attacks` writes docs/security.md."""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.sampling import Tree
from benchmarks.serving import HOSTED, Server, free_port, running
from benchmarks.visitors import Shown, visit
from tests.attacks import floods
from tests.attacks.over_http import send_request
from tests.pages.extremes import links
from ui.chapter.contents import all_pages
from ui.text.words import ENGLISH, load_words

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "security.md"
START, END = "<!-- floods: written by `make attacks` -->", "<!-- end of floods -->"
CPU_SECONDS = 2.0  # that a link may cost before anybody clicks
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


def link_costs(server: Server) -> tuple[str, bool]:
    """The table of the costliest links of every page at its extremes, and whether none costs more than it may."""
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
        asyncio.run(shown_page(server.url, page, {"open-all": "true"}))  # what a page imports, it imports once
        for largest in (True, False):  # the last link of each has all controls of the page
            for _ in links(partial(opened, page, "largest" if largest else "smallest"), largest):
                pass
    rows = [f"| {what} | {costs[what][0]:.1f} s | {'yes' if costs[what][1] else 'no'} |" for what in costs]
    rows.sort(key=lambda row: -float(row.split(" | ")[1].removesuffix(" s")))
    head = "| link | costs | the rest waits for a click |\n| --- | --: | --- |\n"
    return head + "\n".join(rows[:10]), all(seconds <= CPU_SECONDS for seconds, _ in costs.values())


def main() -> int:
    """Return the exit status of pytest, or 1 if others waited or a link cost too much; tables are written anyway."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "attack"]
    command += ["-n", str(os.cpu_count() or 1), "--dist", "loadfile", "--no-loadscope-reorder", *sys.argv[1:]]
    ended = subprocess.run(command, env=os.environ | {"ATTACK_CASES": "40"}, check=False).returncode
    operations = f"127.0.0.1:{free_port()}"
    with tempfile.TemporaryDirectory() as name:
        floods.write_folders(folders := Path(name) / "folders")
        settings = {"ATLAS_PROCESSES": "1", "ATLAS_WORKERS": "2", "ATLAS_METRICS": operations}
        with running(Path(name), HOSTED, settings | {"ATLAS_MODEL_FOLDERS": str(folders)}) as server:
            while send_request(server.url, "GET", "/readyz")[0] != 200:
                time.sleep(0.5)
            costs, cheap = link_costs(server)
            waits, prompt = floods.main(server, f"http://{operations}")
    text = DOCUMENT.read_text(encoding="utf-8")
    before, after = text.split(START)[0], text.split(END)[1]
    DOCUMENT.write_text(f"{before}{START}\n{waits}\n\n{costs}\n{END}{after}", encoding="utf-8")
    return ended or int(not (prompt and cheap))


if __name__ == "__main__":
    sys.exit(main())

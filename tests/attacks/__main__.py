"""Run the whole corpus against the hosted server and write docs/security.md: python -m tests.attacks."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import sync_playwright

from benchmarks.serving import CHROMIUM_ARGUMENTS, HOSTED, find_chromium, running
from tests.attacks import in_browser, over_http
from tests.attacks.over_http import CLIMBS, ROUTES, Attack

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "security.md"
START, END = "<!-- attacks: written by `python -m tests.attacks` -->", "<!-- end of attacks -->"


def tries() -> Iterator[tuple[Attack, str]]:
    """Every attack and what it got, while the server stands."""
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), HOSTED) as server, sync_playwright() as play:
        for attack in over_http.attacks():
            yield attack, attack.run(server.url)
        browser = play.chromium.launch(executable_path=find_chromium(), args=CHROMIUM_ARGUMENTS)
        for attack in in_browser.attacks():
            window = browser.new_page()
            yield attack, attack.run(window, server.url)
            window.close()
        browser.close()


def table(got: list[tuple[Attack, str]]) -> str:
    """One row a try; a path that climbs, tried on every route, is one row."""
    climbs: dict[str, Counter[str]] = {climb: Counter() for climb in CLIMBS}
    paths = {f"GET `{route}{climb}`": climb for route in ROUTES for climb in CLIMBS}
    rows = []
    for attack, answer in got:
        if attack.how in paths:
            climbs[paths[attack.how]][answer] += 1
        else:
            rows.append(f"| {attack.target} | {_cell(attack.how)} | {_cell(answer)} |")
    files = [
        f"| files | GET `{climb}` below {len(ROUTES)} routes | "
        + "; ".join(f"{answer} ({count} times)" for answer, count in sorted(answers.items()))
        + " |"
        for climb, answers in climbs.items()
    ]
    return "\n".join(["| target | try | what it got |", "| --- | --- | --- |", *files, *rows])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> int:
    got = []
    for attack, answer in tries():
        print(f"{attack.target:12} {attack.how[:90]:90} {answer}", flush=True)
        got.append((attack, answer))
    before, after = (
        DOCUMENT.read_text(encoding="utf-8").split(START)[0],
        DOCUMENT.read_text(encoding="utf-8").split(END)[1],
    )
    DOCUMENT.write_text(f"{before}{START}\n{table(got)}\n{END}{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

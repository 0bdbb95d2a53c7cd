"""Heads switched off on the Transformer page: a click to the new translation, and BLEU over held-out sentences."""

from __future__ import annotations

import tempfile
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import sync_playwright

from benchmarks.browsing import chromium, visit
from benchmarks.report import Row
from benchmarks.serving import running
from viz_core.pretrained.samples import held_out

QUICK = {"samples": 1, "over_many": False}
TEXT = "If it rains tomorrow, we will not go to the beach with the children."
CLICK, OVER_MANY = 0.5, 15.0  # seconds; DESIGN.md, section 7
TIMEOUT = 120.0

# The thumbnail's switch, and the translation without that head.
_SWITCH = """(head) => atlas.until(
  () => ours.root().querySelector(`.head[data-layer="2"][data-head="${head}"]`)
    .parentElement.querySelector(".switch").click(),
  () => document.querySelector(".st-key-translation-without")?.textContent.includes(`cross-3.${head + 1}`))"""
_OVER_MANY = """() => atlas.until(
  () => document.querySelector(".st-key-t-held-out-go button").click(),
  () => document.querySelector('[data-testid=stMain]').textContent.includes("resampled"))"""


def measure(samples: int = 5, over_many: bool = True) -> list[Row]:
    """Seconds, on a warm server: one head more is off with each click; the score is counted with heads and without.

    Raises:
        RuntimeError: if there is no Chromium, or the server does not start.
    """
    with (
        tempfile.TemporaryDirectory() as log,
        running(Path(log)) as server,
        sync_playwright() as playwright,
        chromium(playwright) as browser,
        visit(browser, f"{server.url}/transformer?t-text={quote(TEXT)}") as visitor,
    ):
        visitor.page.wait_for_function("window.ours?.painted() > 0 && watch.quietFor(2)", timeout=1000 * TIMEOUT)
        clicks = tuple(visitor.within(TIMEOUT, _SWITCH, head) for head in range(samples))
        rows = [Row("a head switched off: click to new translation painted", "s", clicks, target=CLICK)]
        if over_many:
            visitor.page.wait_for_function("watch.quietFor(2)", timeout=1000 * TIMEOUT)
            score = (visitor.within(TIMEOUT, _OVER_MANY),)
            what = f"BLEU with heads off and on, {len(held_out())} held-out sentences"
            rows.append(Row(what, "s", score, target=OVER_MANY))
    return rows

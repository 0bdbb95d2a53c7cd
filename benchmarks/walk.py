"""The walk in a browser: how long a frame takes while it plays, and what is sent for it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from benchmarks.browsing import chromium, visit
from benchmarks.report import Row
from benchmarks.serving import running

QUICK = {"samples": 1}
FRAME, SENT = 1000 / 60, 0.3  # ms, MB; 60 frames a second
TIMEOUT = 120.0
KINDS = ("writer", "translator", "picture")

_PLAYS = "() => [...document.querySelectorAll('*')].some((n) => n.shadowRoot?.querySelector('.walk[data-fps]'))"
# 61 frames in a row set data-fps anew.
_FRAMES = """() => new Promise((resolve) => {
  const root = [...document.querySelectorAll("*")].map((node) => node.shadowRoot?.querySelector(".walk")).find(Boolean);
  delete root.dataset.fps;
  const look = () => (root.dataset.fps ? resolve(1000 / Number(root.dataset.fps)) : requestAnimationFrame(look));
  look();
})"""


def measure(samples: int = 5) -> list[Row]:
    """Milliseconds a frame of the default sentence while it plays; megabytes of script and first block of each model.

    Raises:
        RuntimeError: if there is no Chromium, or the server does not start.
    """
    with (
        tempfile.TemporaryDirectory() as log,
        running(Path(log)) as server,
        sync_playwright() as playwright,
        chromium(playwright) as browser,
        visit(browser, f"{server.url}/walk") as visitor,
    ):
        visitor.page.wait_for_function(_PLAYS, timeout=1000 * TIMEOUT)
        frames = tuple(float(visitor.within(TIMEOUT, _FRAMES)) for _ in range(samples))
    rows = [Row("the walk, playing: a frame", "ms", frames, target=FRAME)]
    sent = tuple(size / 1e6 for size in map(_bytes_of, KINDS))
    rows.append(Row("the walk: script and first block, the largest of three models", "MB", (max(sent),), target=SENT))
    return rows


def _bytes_of(kind: str) -> int:
    """Return the bytes of the script, packed as it is sent, and of the first block of a model's default walk."""
    from serving.http.static_scripts import compressed
    from ui.blocks.walk import WalkInputs
    from ui.compute.pictures import sample_picture
    from ui.text.words import load_words
    from ui.widgets.walk import walk_links
    from ui.widgets.walk_payload import encode_walk
    from viz_core.pretrained.samples import sentence

    words = load_words("walk", "en")
    texts = {"writer": words("start.writer"), "translator": sentence("cat")}
    picture = sample_picture("ankle-boot") if kind == "picture" else None
    walk = WalkInputs(kind, texts.get(kind, ""), picture).walk()
    data = encode_walk(
        walk,
        key="0" * 16,
        kind=kind,
        block=(0, 0),
        edits=(),
        before=None,
        words=words.group("view"),
        links=walk_links(words),
        language="en",
    )
    return len(compressed("walk")) + len(data)

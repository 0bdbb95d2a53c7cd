"""The model lab with 4,096 tokens through a 6 x 384 encoder: from the forward's end to thumbnails, and meanwhile."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from benchmarks.browsing import chromium, visit
from benchmarks.random_models import save_bert
from benchmarks.report import Row
from benchmarks.serving import running

SIZES = (1024, 4096)
QUICK = {"sizes": (128,), "samples": 1}
LAYERS, HEADS = 6, 12
TARGET = 2.0  # seconds from the forward's end to the first thumbnails
NOTHING = "%20"  # an address cannot hold a long text: the page opens without one
# The line that tells of the run stands there as soon as the forward is over.
STOPWATCH = """async ([line, heads]) => {
    const since = start => (performance.now() - start) / 1000;
    const until = async there => { while (!there()) await atlas.nextFrame(); await atlas.nextFrame(); };
    await until(() => document.body.innerText.includes(line));
    const over = performance.now();
    await until(() => ours.root() && ours.painted());
    const first = since(over);
    const [layer] = ours.opened().split(".");  // its pictures come first
    const click = await atlas.until(() => ours.open(layer, 5), () => ours.opened() === `${layer}.5`);
    await until(() => ours.painted() === heads);
    return [first, since(over), click];
}"""


def measure(sizes: Sequence[int] = SIZES, samples: int = 3) -> list[Row]:
    """Seconds on the page, each time with a new text.

    Raises:
        RuntimeError: if there is no Chromium, or the server does not start.
    """
    rows = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright, chromium(playwright) as browser:
        models = Path(folder) / "models"
        save_bert(models / "long")
        settings = {"ATLAS_MODEL_FOLDERS": str(models), "HF_HUB_OFFLINE": "1"}
        with running(Path(folder), settings=settings) as server:
            url = f"{server.url}/model-lab?ml-model=long"
            _read(browser, url, 16, "warm")  # the first forward of a process takes several times as long
            for n in sizes:
                found = [_read(browser, url, n, f"w{take}") for take in range(samples)]
                first, all_, click = zip(*found, strict=True)
                about = f"model lab, {LAYERS} layers of {HEADS} heads, {n:,} tokens"
                rows += [
                    Row(f"{about}: forward's end to first thumbnails", "s", first, target=TARGET, headline=True),
                    Row(f"{about}: forward's end to all of them", "s", all_),
                    Row(f"{about}: a click meanwhile", "s", click),
                ]
    return rows


def _read(browser: Browser, url: str, n: int, word: str) -> tuple[float, float, float]:
    """Seconds to the first and to all thumbnails, and until a click that is made between them is answered."""
    with visit(browser, f"{url}&ml-text={NOTHING}") as visitor:
        page = visitor.page
        box = page.get_by_label("Text", exact=True)
        box.fill(" ".join([word] + ["w"] * (n - 3)))  # and what begins and ends every text
        # In braces: a promise that evaluate gets back, it would wait for.
        page.evaluate(f"given => {{ window.timed = ({STOPWATCH})(given); }}", [f"{n:,} tokens ·", LAYERS * HEADS])
        box.press("Control+Enter")
        first, every, click = page.evaluate("window.timed")
        return float(first), float(every), float(click)

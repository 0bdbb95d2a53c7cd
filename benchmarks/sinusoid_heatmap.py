"""From a move of the slider to the sinusoidal table painted, and the bytes that took: our page against plotly."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from benchmarks.report import Row
from benchmarks.serving import chromium, serve, visit

SIZES = ((60, 32, 0.15, None), (2000, 512, 0.25, 1.2))  # positions, dimensions, seconds allowed, MB allowed
SAMPLES = 11
QUICK = {"sizes": SIZES[:1], "samples": 1}
SETTLE_MS = 1500  # after a paint, until what else the page sends has come

# What each page shows: the number of rows painted, or null.
OURS = """() => [...document.querySelectorAll('[data-testid=stBidiComponentIsolated]')]
    .map(host => host.shadowRoot?.querySelector('.stage')).find(Boolean)?.dataset.rows"""
# Plotly draws a heatmap as one picture; its data change before it does.
PLOTLY = """() => {
    const graph = document.querySelector('.js-plotly-plot');
    const picture = graph?.querySelector('.heatmaplayer image')?.getAttribute('href');
    if (!picture || picture === window.lastPicture) return window.lastRows;
    window.lastPicture = picture;
    return (window.lastRows = graph.calcdata?.[0]?.[0]?.z?.length);
}"""


def measure(sizes: Sequence[tuple[int, int, float, float | None]] = SIZES, samples: int = SAMPLES) -> list[Row]:
    """Seconds and megabytes for the smallest and the largest table. RuntimeError if there is no Chromium."""
    rows = []
    with (
        tempfile.TemporaryDirectory() as ours_log,
        tempfile.TemporaryDirectory() as peer_log,
        serve(Path(ours_log)) as ours_url,
        serve(Path(peer_log), "benchmarks/peers/sinusoid_plotly.py") as peer_url,
        sync_playwright() as playwright,
        chromium(playwright) as browser,
    ):
        with visit(browser, ours_url):
            pass  # a server's first visitor waits for the imports
        for n, d, seconds, megabytes in sizes:
            ours = _sample(browser, f"{ours_url}/sinusoidal-encoding", OURS, n, d, samples)
            peer = _sample(browser, peer_url, PLOTLY, n, d, samples)
            what = f"sinusoid heatmap {n:,} x {d}"
            rows.append(Row(f"{what}, slider to paint", "s", ours[0], "plotly Heatmap", peer[0], seconds))
            rows.append(Row(f"{what}, on the wire", "MB", ours[1], "plotly Heatmap", peer[1], megabytes))
    return rows


def _sample(
    browser: Browser, url: str, shown: str, n: int, d: int, samples: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Step the slider up to n, timing each step and counting what comes for it.

    No step goes back: Streamlit keeps the large messages a browser has had, and sends only their names again.
    """
    first = n - samples
    seconds, megabytes = [], []
    with visit(browser, f"{url}?se-d={d}&se-n={first}") as visitor:
        page = visitor.page
        page.wait_for_function(f"rows => String(({shown})()) === String(rows)", arg=first)
        page.wait_for_timeout(SETTLE_MS)
        for rows in range(first + 1, n + 1):
            before = visitor.received
            seconds.append(visitor.press("Positions n", "ArrowRight", f"String(({shown})()) === '{rows}'"))
            page.wait_for_timeout(SETTLE_MS)
            megabytes.append((visitor.received - before) / 1e6)
    return tuple(seconds), tuple(megabytes)

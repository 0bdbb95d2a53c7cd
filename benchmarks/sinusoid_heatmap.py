"""From a move of the slider to the sinusoidal table painted, and the bytes that took: our page against plotly."""

from __future__ import annotations

import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from benchmarks.report import Row
from benchmarks.serving import CHROMIUM_ARGUMENTS, find_chromium, serve

SIZES = ((60, 32, 0.15, None), (2000, 512, 0.25, 1.2))  # positions, dimensions, seconds allowed, MB allowed
SAMPLES = 11
SETTLE_MS = 1500  # after a paint, until what else the page sends has come

# What each page shows: the number of rows painted, or null.
OURS = """() => document.querySelector('[data-testid=stBidiComponentIsolated]')
    ?.shadowRoot?.querySelector('.stage')?.dataset.rows"""
# Plotly draws a heatmap as one picture; its data change before it does.
PLOTLY = """() => {
    const graph = document.querySelector('.js-plotly-plot');
    const picture = graph?.querySelector('.heatmaplayer image')?.getAttribute('href');
    if (!picture || picture === window.lastPicture) return window.lastRows;
    window.lastPicture = picture;
    return (window.lastRows = graph.calcdata?.[0]?.[0]?.z?.length);
}"""
# Seconds from the key to the frame after the one in which the rows are there.
STOPWATCH = """rows => new Promise(resolve => {
    const shown = SHOWN;
    shown();
    const slider = document.querySelector('input[aria-label="Positions n"]');
    slider.addEventListener('keydown', () => {
        const start = performance.now();
        const look = () => {
            if (String(shown()) !== String(rows)) requestAnimationFrame(look);
            else requestAnimationFrame(() => resolve((performance.now() - start) / 1000));
        };
        requestAnimationFrame(look);
    }, { once: true, capture: true });
    slider.focus();
})"""


def measure() -> list[Row]:
    """Seconds and megabytes for the smallest and the largest table.

    Raises:
        RuntimeError: if there is no Chromium.
    """
    chromium = find_chromium()
    if chromium is None:
        raise RuntimeError("this benchmark needs Chromium, and found none")
    rows = []
    with (
        tempfile.TemporaryDirectory() as ours_log,
        tempfile.TemporaryDirectory() as peer_log,
        serve(Path(ours_log)) as ours_url,
        serve(Path(peer_log), "benchmarks/peers/sinusoid_plotly.py") as peer_url,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_ARGUMENTS)

        def page() -> Page:
            return browser.new_context(viewport={"width": 1400, "height": 1000}).new_page()

        page().goto(ours_url)  # a server's first visitor waits for the imports
        for n, d, seconds, megabytes in SIZES:
            ours = _sample(page(), f"{ours_url}/sinusoidal-encoding", OURS, n, d)
            peer = _sample(page(), peer_url, PLOTLY, n, d)
            what = f"sinusoid heatmap {n:,} x {d}, slider to paint"
            rows.append(Row(what, "s", ours[0], "plotly", peer[0], seconds))
            if megabytes is not None:
                what = f"sinusoid heatmap {n:,} x {d}, on the wire"
                rows.append(Row(what, "MB", ours[1], "plotly", peer[1], megabytes))
        browser.close()
    return rows


def _sample(page: Page, url: str, shown: str, n: int, d: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Step the slider up to n, timing each step and counting what comes for it.

    No step goes back: Streamlit keeps the large messages a browser has had, and sends only their names again.
    """
    received = 0

    def count(payload: str | bytes) -> None:
        nonlocal received
        received += len(payload)

    page.on("websocket", lambda socket: socket.on("framereceived", count))
    page.set_default_timeout(60_000)
    first = n - SAMPLES
    page.goto(f"{url}?se-d={d}&se-n={first}")
    page.wait_for_function(f"rows => String(({shown})()) === String(rows)", arg=first)
    page.wait_for_timeout(SETTLE_MS)
    seconds, megabytes = [], []
    for rows in range(first + 1, n + 1):
        before = received
        seconds.append(_step(page, shown, rows))
        page.wait_for_timeout(SETTLE_MS)
        megabytes.append((received - before) / 1e6)
    page.context.close()
    return tuple(seconds), tuple(megabytes)


def _step(page: Page, shown: str, rows: int) -> float:
    """Move the slider by one with a key; seconds until so many rows are painted."""
    # In braces: a promise that evaluate gets back, it would wait for.
    page.evaluate(f"rows => {{ window.timed = ({STOPWATCH.replace('SHOWN', shown)})(rows); }}", rows)
    page.keyboard.press("ArrowRight")
    return float(page.evaluate("window.timed"))

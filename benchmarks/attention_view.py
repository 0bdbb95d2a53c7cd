"""The page of 12 layers of 12 heads: open it, open another head; ours against BertViz in the same Chromium."""

import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from playwright.sync_api import Browser, Playwright, sync_playwright
from playwright.sync_api import Error as BrowserError
from playwright.sync_api import TimeoutError as Late

from benchmarks.report import Row
from benchmarks.serving import ROOT, chromium, free_port, serve, visit

SIZES = (32, 128, 512, 1024, 4096)
PEER_SIZES = (32, 128, 512)
PEERS = ("model_view", "head_view")
LIMIT = 60.0  # seconds a case may take before it counts as not possible
LAYERS, HEADS = 12, 12
HEADS_OPENED = tuple((layer, (5 * layer) % HEADS) for layer in range(1, 6))
QUIET = 0.7  # seconds without a change after which a map is there
SETTLE_MS = 1500
MAX_SECONDS = 20.0  # no sample of a case begins after that
QUICK = {"sizes": (8,), "peer_sizes": (8,), "samples": 1, "limit": 60.0}

# DESIGN.md, section 7: seconds to open, or for the slowest layer; megabytes on the wire.
OPEN_TARGETS = {128: 0.5, 1024: 2.0}
LAYER_TARGETS = {4096: 2.0}
WIRE_TARGETS = dict.fromkeys((128, 1024, 4096), 0.7)


@dataclass(frozen=True)
class Case:
    """What one view of one size took; `note` says why samples are missing."""

    open: tuple[float, ...] = ()  # s
    slowest_layer: tuple[float, ...] = ()  # s
    wire: tuple[float, ...] = ()  # MB
    switch: tuple[float, ...] = ()  # s
    note: str = ""

    def __add__(self, other: "Case") -> "Case":
        names = ("open", "slowest_layer", "wire", "switch")
        joined = {name: getattr(self, name) + getattr(other, name) for name in names}
        return Case(**joined, note=self.note or other.note)


def measure(
    sizes: Sequence[int] = SIZES, peer_sizes: Sequence[int] = PEER_SIZES, samples: int = 5, limit: float = LIMIT
) -> list[Row]:
    """Seconds and sizes, from the press of a button to the picture, the forward pass being done.

    RuntimeError if there is no Chromium, or BertViz is not installed.
    """
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as log, sync_playwright() as playwright:
        with serve(Path(log), "benchmarks/pages/heads.py") as url, chromium(playwright) as browser:
            with visit(browser, url):
                pass  # a server's first visitor waits for the imports
            ours = {n: sampled(lambda n=n: _ours(browser, url, n, limit), samples) for n in sizes}
        for n in sizes:
            names = PEERS if n in peer_sizes else ()
            found = {
                name: sampled(lambda n=n, name=name: _bertviz(playwright, name, n, limit), samples) for name in names
            }
            rows += rows_of(n, ours[n], {f"BertViz {name}": case for name, case in found.items()})
    return rows


def sampled(take: Callable[[], Case], samples: int, clock: Callable[[], float] = time.monotonic) -> Case:
    """Up to so many samples, none begun after `MAX_SECONDS` or after one that failed."""
    begun, case = clock(), take()
    for _ in range(samples - 1):
        if case.note or clock() - begun > MAX_SECONDS:
            break
        case += take()
    return case


def rows_of(n: int, ours: Case, peers: Mapping[str, Case]) -> list[Row]:
    """Ours beside each peer's, or alone where there is none."""
    about, opened = f"12 x 12 heads, {n:,} tokens", OPEN_TARGETS.get(n)
    rows = []
    for name, peer in (peers or {"": Case()}).items():
        note = ours.note or peer.note
        rows += [
            Row(f"{about}: open", "s", ours.open, name, peer.open, opened, note=note),
            Row(f"{about}: open another head", "s", ours.switch, name, peer.switch, note=note),
            Row(f"{about}: on the wire", "MB", ours.wire, name, peer.wire, WIRE_TARGETS.get(n), note=note),
        ]
    if n in LAYER_TARGETS:
        rows.append(Row(f"{about}: slowest layer", "s", ours.slowest_layer, target=LAYER_TARGETS[n], note=ours.note))
    return rows


def _ours(browser: Browser, url: str, n: int, limit: float) -> Case:
    layers = [HEADS * (layer + 1) for layer in range(LAYERS)]
    with visit(browser, f"{url}?n={n}") as visitor:
        visitor.page.get_by_role("button", name="Show").wait_for()
        visitor.page.wait_for_timeout(SETTLE_MS)
        before = visitor.received
        case = Case()
        try:
            times = visitor.within(limit, "marks => atlas.reaching(ours.show, ours.painted, marks)", layers)
            visitor.page.wait_for_timeout(SETTLE_MS)
            waits = [after - earlier for earlier, after in zip([0.0, *times], times, strict=False)]
            case = Case((times[-1],), (max(waits),), ((visitor.received - before) / 1e6,))
            opened = f"head => atlas.settling(() => ours.open(...head), ours.picture, {QUIET})"
            switch = [visitor.within(limit, opened, list(head)) for head in HEADS_OPENED]
        except Late:
            return replace(case, note=f"not ready after {limit:.0f} s")
        return replace(case, switch=(statistics.median(switch),))


def _bertviz(playwright: Playwright, name: str, n: int, limit: float) -> Case:
    """A browser and a server of its own for each case: both may hang."""
    with _bertviz_server() as url, chromium(playwright) as browser, visit(browser, url) as visitor:
        urllib.request.urlopen(f"{url}/prepare?n={n}", timeout=120).close()
        case = Case()
        try:
            script = "([name, n]) => atlas.until(() => show(name, n), bertviz.drawn)"
            seconds = visitor.within(limit, script, [name, n])
            case = Case(open=(seconds,), wire=(visitor.page.evaluate("window.received") / 1e6,))
            heads = HEADS_OPENED if seconds < limit / 10 else HEADS_OPENED[:1]
            switch = [visitor.within(limit, f"head => bertviz.{name}(...head)", list(head)) for head in heads]
        except Late:
            return replace(case, note=f"not ready after {limit:.0f} s")
        except (RuntimeError, BrowserError) as error:
            return replace(case, note=f"failed: {str(error).splitlines()[0][:80]}")
        return replace(case, switch=(statistics.median(switch),))


@contextmanager
def _bertviz_server() -> Iterator[str]:
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.peers.bertviz_page", str(port)]
    server = subprocess.Popen(command, cwd=ROOT)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(1200):
            if server.poll() is not None:
                raise RuntimeError("BertViz did not start; is requirements-bench.txt installed?")
            try:
                urllib.request.urlopen(url, timeout=5).close()
                break
            except OSError:
                time.sleep(0.1)
        yield url
    finally:
        server.kill()  # it may be in the middle of a long sentence
        server.wait(timeout=30)

"""The site without a server in Chromium: its first translation, a token, and how far it is from Python."""

import base64
import functools
import http.server
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Page, sync_playwright

from benchmarks.report import Row
from benchmarks.serving import ROOT, chromium
from viz_core.hub import HubModel, HubRun, load_hub
from viz_core.pretrained import Translation, Translator, load
from viz_core.pretrained.samples import held_out
from viz_core.trace import AttentionCall
from viz_core.view.components import group_labels
from viz_core.view.shipped import translation_groups

QUICK = {"sentences": 2}
PICTURE, FIRST, TOKEN = 1.5, 3.0, 30.0  # seconds, seconds and milliseconds
VISIT = 12.0  # megabytes
PAGES = ("transformer", "writer", "vision-transformer")
MAPS = 1e-4
TIMEOUT = 120_000
SUB_PATH = "some/where"
APP = "https://atlas.example/"


def packing(function: str) -> str:
    """A JavaScript function that may call `pack(numbers)`, which returns a text for `unpack`.

    Playwright passes a list on one number at a time, which takes longer than a model's run.
    """
    pack = """const pack = (numbers) => {
      const bytes = new Uint8Array(Float32Array.from(numbers).buffer);
      let text = "";
      for (let i = 0; i < bytes.length; i += 4096) text += String.fromCharCode(...bytes.subarray(i, i + 4096));
      return btoa(text);
    };"""
    return f"(() => {{ {pack} return {function}; }})()"


# What the browser makes of some texts: as `translate` of translator.js returns it, with every map.
IN_BROWSER = packing("""async ([texts, beam, off]) => {
  const { attentionWeights } = await import(new URL("../attention.js", location));
  const results = [];
  for (const text of texts) {
    const started = performance.now();
    const { calls, outputs, ...found } = await atlas.model.translate(text, { beam, off });
    const time = performance.now() - started;
    const maps = Object.entries(calls).map(([group, layers]) => [
      group, layers.map((call) => pack(attentionWeights(call))),
    ]);
    results.push({ ...found, time, maps: Object.fromEntries(maps) });
  }
  return results;
}""")
# What the writer's page makes of some texts: as `run` of writer.js returns it, with every map.
WRITTEN = packing("""async ([texts, options]) => {
  const { attentionWeights } = await import(new URL("../attention.js", location));
  const results = [];
  for (const text of texts) {
    const { calls, ...found } = await atlas.model.run(text, options);
    results.push({ ...found, maps: calls["decoder-self"].map((call) => pack(attentionWeights(call))) });
  }
  return results;
}""")
_SINCE_ARRIVAL = """() => {
  const at = (name) => performance.getEntriesByName(name).at(-1).startTime;  // the recorded one is shown first
  return (at("translated") - at("arrived")) / 1000;
}"""

_RECORDED = """() => performance.getEntriesByName("recorded")[0].startTime / 1000"""


def measure(sentences: int = 200) -> list[Row]:
    """Seconds from the model's arrival to the first translation, milliseconds a token, and what differs from Python.

    RuntimeError if there is no Chromium, or the site cannot be built.
    """
    texts = [sample.english for sample in held_out()[:sentences]]
    model = load("transformer-en-fr", device="cpu")
    assert isinstance(model, Translator)
    firsts, pictures, walks = [], [], []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright, chromium(playwright) as browser:
        build_site_below(Path(folder))
        loaded = {name: first_visit(browser.new_context().new_page(), Path(folder), name) for name in PAGES}
        with serve_site(Path(folder)) as url:
            for _ in range(min(3, sentences)):
                walk = browser.new_context().new_page()
                walk.goto(f"{url}en/walk.html")
                wait_until_ready(walk)
                walks.append(walk.evaluate(_RECORDED))
                page = browser.new_context().new_page()
                page.goto(f"{url}en/transformer.html")
                wait_until_ready(page)
                firsts.append(page.evaluate(_SINCE_ARRIVAL))
                pictures.append(page.evaluate(_RECORDED))
            found = [page.evaluate(IN_BROWSER, [[text], 1, []])[0] for text in texts]
            page.goto(f"{url}en/writer.html")
            wait_until_ready(page)
            starts = [" ".join(text.split()[:3]) for text in texts]
            written = [page.evaluate(WRITTEN, [[start], {"newTokens": 12}])[0] for start in starts]
    expected = [model.translate(text) for text in texts]
    pairs = list(zip(found, expected, strict=True))
    different = sum(one["target"] != list(other.target_ids) for one, other in pairs)
    maps = tuple(map_difference(one, other) for one, other in pairs if one["target"] == list(other.target_ids))
    per_token = tuple(one["time"] / len(one["target"]) for one in found)
    writer = load_hub("writer-en", device="cpu", offline=True)
    return [
        Row("site: the first picture, before the model has arrived", "s", tuple(pictures), target=PICTURE),
        Row("site: the walk's first picture, before the model has arrived", "s", tuple(walks), target=PICTURE),
        Row("site: the model's arrival to the first translation", "s", tuple(firsts), target=FIRST),
        Row("site: a token of a translation in the browser", "ms", per_token, target=TOKEN),
        *(
            Row(f"site: sent at the first visit to {name}.html", "MB", (size,), target=VISIT)
            for name, size in loaded.items()
        ),
        Row(f"site: of {len(texts)} held-out translations, other than Python's", "sentences", (different,), target=0),
        Row("site: largest difference of a weight from Python's", "weight", (max(maps),), target=MAPS),
        *_writer_rows(writer, starts, written),
    ]


def _writer_rows(writer: HubModel, starts: Sequence[str], written: Sequence[dict[str, Any]]) -> list[Row]:
    runs = [writer.run(start, max_new_tokens=12) for start in starts]
    pairs = [(one, run) for one, run in zip(written, runs, strict=True)]
    same = [one["ids"] == run.inputs["input_ids"][0].tolist() for one, run in pairs]
    most = max(written_difference(*pair) for pair, is_same in zip(pairs, same, strict=True) if is_same)
    return [
        Row(f"site: of {len(starts)} continued texts, other than Python's", "texts", (same.count(False),), target=0),
        Row("site: largest difference of a weight of the writer", "weight", (most,), target=MAPS),
    ]


def unpack(text: str, shape: tuple[int, ...]) -> np.ndarray:
    """The numbers that `pack` made a text of."""
    return np.frombuffer(base64.b64decode(text), "<f4").reshape(shape)


def map_difference(found: dict[str, Any], expected: Translation) -> float:
    """The largest difference of any weight of any map between the browser's translation and Python's."""
    most = 0.0
    for group in translation_groups(expected, group_labels("translation")):
        for call, weights in zip(group.calls, found["maps"][group.id], strict=True):
            own = call.weights()[0].numpy()
            most = max(most, float(np.abs(own - unpack(weights, own.shape)).max()))
    return most


def written_difference(found: dict[str, Any], run: HubRun) -> float:
    """The largest difference of any weight of any map between the browser's text and Python's."""
    return _largest_difference(found, run.maps[0].calls)


def _largest_difference(found: dict[str, Any], calls: Iterable[AttentionCall]) -> float:
    own = [call.weights()[0].numpy() for call in calls]
    maps = [unpack(weights, expected.shape) for weights, expected in zip(found["maps"], own, strict=True)]
    return max(float(np.abs(one - other).max()) for one, other in zip(maps, own, strict=True))


def wait_until_ready(page: Page) -> None:
    """Wait until the page has its model and has run it once."""
    page.locator("html[data-ready]").wait_for(state="attached", timeout=TIMEOUT)


def first_visit(page: Page, root: Path, name: str) -> float:
    """Megabytes sent at the first visit of a browser to a page of a built site, until it also works offline."""
    sent: list[int] = []
    with serve_site(root, sent) as url:
        page.goto(f"{url}en/{name}.html")
        wait_until_ready(page)
        page.get_by_text("works offline").first.wait_for(timeout=TIMEOUT)
        page.goto("about:blank")
    return sum(sent) / 1e6


def build_site_below(root: Path) -> None:
    """Build the site at a sub-path of a folder. RuntimeError if it cannot be built; the message says why."""
    done = subprocess.run(build_command(root), cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)


def build_command(root: Path) -> Sequence[str]:
    """The command that builds the site at a sub-path of a folder."""
    return [sys.executable, "-m", "static_site", "--out", str(root / SUB_PATH), "--app", APP]


@contextmanager
def serve_site(root: Path, sent: list[int] | None = None) -> Iterator[str]:
    """Serve a folder with `build_site_below`'s site in it; the address of the site.

    Args:
        sent: gets the size of each file that is sent, in bytes.
    """
    handler = functools.partial(_Quiet, directory=root, sent=[] if sent is None else sent)
    server = http.server.ThreadingHTTPServer(("localhost", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://localhost:{server.server_port}/{SUB_PATH}/"
    finally:
        server.shutdown()
        server.server_close()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def __init__(self, *args: Any, sent: list[int], **options: Any) -> None:
        self.sent = sent
        super().__init__(*args, **options)

    def copyfile(self, source: Any, outputfile: Any) -> None:
        content = source.read()
        self.sent.append(len(content))
        outputfile.write(content)

    def log_message(self, *args: Any) -> None: ...

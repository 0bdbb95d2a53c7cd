"""What the view saves, and the view as a notebook's widget, compared with the numbers of the library."""

import base64
import csv
import io
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import cairosvg
import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.attention_view.live_view import KEYS, QUERIES, START, TEXT, LiveView, colour, saved_npz, weights_of
from tests.viz_core.view.attention_groups import make_group
from viz_core.view.components import view_words
from viz_core.view.map_group import MapGroup
from viz_core.view.payload import View
from viz_core.view.widget import AttentionWidget


def test_numbers_are_saved(live: LiveView, cross: MapGroup) -> None:
    weights = weights_of(cross, 0, 0)
    table = list(csv.reader(io.StringIO(live.save("csv").decode("utf-8-sig"))))
    names = ["'=1+1" if key == "=1+1" else key for key in KEYS]  # a spreadsheet would run it
    assert table[0] == ["Layer 1, head 1, weight: queries (French) down, keys (English) across", *names]
    assert [row[0] for row in table[1:]] == list(QUERIES)
    np.testing.assert_array_equal(np.array([row[1:] for row in table[1:]], dtype=np.float32), weights)

    saved = saved_npz(live)
    np.testing.assert_array_equal(saved["weights"], weights)
    assert (tuple(saved["queries"]), tuple(saved["keys"])) == (QUERIES, KEYS)
    assert (list(saved["first"]), list(saved["units_per_cell"])) == ([0, 0], [1, 1])
    assert "Model: some-model, revision 1a2b." in saved["about"]


def test_a_picture_is_read_alike_everywhere_and_says_what_it_is(page: Page, live: LiveView, cross: MapGroup) -> None:
    svg = live.save("svg").decode()
    tree = ElementTree.fromstring(svg)  # whatever the tokens hold
    metadata = "".join(tree.itertext())
    assert tree.findtext("{*}title") == "Cross · Layer 1, head 1"
    for text in ("Model: some-model, revision 1a2b.", f"“{TEXT}”", "queries: French", "<eos>", page.url):
        assert text in metadata
    assert "colour: square root" in metadata
    colours = {value for node in tree.iter() for name in ("fill", "stroke") if (value := node.get(name))}
    assert all(re.fullmatch("#[0-9a-f]{6}|none", each) for each in colours)

    saved = Image.open(io.BytesIO(live.save("png")))
    info = saved.text  # type: ignore[attr-defined]
    assert (info["Title"], info["Source"]) == ("Cross · Layer 1, head 1", page.url)
    assert f"“{TEXT}”" in info["Description"]

    expected = [colour(weight) for weight in weights_of(cross, 0, 0).flat]
    translation = re.search(r"translate\(([\d.]+) ([\d.]+)\)", svg)
    assert translation
    x0, y0 = float(translation[1]), float(translation[2])
    cairo = Image.open(io.BytesIO(cairosvg.svg2png(svg.encode(), scale=3))).convert("RGB")
    assert cairo.size == saved.size == (3 * int(tree.get("width", 0)), 3 * int(tree.get("height", 0)))
    shape = r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" fill="#(\w+)" transform'
    cells = re.findall(shape, svg)
    assert len(cells) == len(expected)
    for (*place, drawn), wanted in zip(cells, expected, strict=True):
        x, y, w, h = map(float, place)
        np.testing.assert_allclose(list(bytes.fromhex(drawn)), wanted, atol=1)
        for picture in (saved.convert("RGB"), cairo):
            pixel = picture.getpixel((round(3 * (x0 + x + w / 2)), round(3 * (y0 + y + h / 2))))
            np.testing.assert_allclose(pixel, wanted, atol=1)


def test_a_long_map_is_saved_exact_strip_by_strip(page: Page) -> None:
    long = make_group(1100, 1000, layers=1, heads=2)  # 1,100,000 weights: two strips
    live = LiveView(page, View([long], view_words()))
    saved = saved_npz(live)
    assert live.file == "attention-cross-layer-1-head-1.npz"
    np.testing.assert_allclose(saved["weights"], weights_of(long, 0, 0), rtol=0, atol=1e-7)
    assert list(saved["units_per_cell"]) == [1, 1]
    assert list(dict.fromkeys(want for want in live.wants if want.startswith("rows"))) == [  # asked again after 8 s
        "rows 0.cross:0.0:mean:tokens 0 1048 0 1000",
        "rows 0.cross:0.0:mean:tokens 1048 52 0 1000",
    ]


def test_the_saved_page_opens_without_a_server(
    live: LiveView, cross: MapGroup, browser: Browser, tmp_path: Path
) -> None:
    live.head(1, 1).click()
    file = tmp_path / "view.html"
    file.write_bytes(live.save("page"))
    context = browser.new_context(offline=True)
    opened = context.new_page()
    opened.goto(file.as_uri())
    expect(opened.locator('button.head[data-layer="1"][data-head="1"]')).to_have_attribute("aria-selected", "true")
    opened.locator('button.head[data-layer="0"][data-head="2"]').click()
    stage = opened.get_by_role("application").first
    expect(stage).to_have_attribute("data-exact", "true")
    opened.locator("[data-part=exports] summary").click()
    with opened.expect_download() as download:
        opened.locator("[data-export=npz]").click()
    with np.load(download.value.path()) as saved:
        np.testing.assert_array_equal(saved["weights"], weights_of(cross, 0, 2))
    context.close()


# What JupyterLab gives a widget: a model that carries messages, and an element.
_NOTEBOOK = """
const bytesOf = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const listeners = new Set();
window.deliver = (messages) => {
  for (const [content, buffers] of messages) {
    for (const listener of listeners) listener(content, buffers.map((text) => new DataView(bytesOf(text).buffer)));
  }
};
window.sent = [];
const model = {
  get: (name) => ({ _pictures: "attention-1" })[name],
  on: (name, listener) => name === "msg:custom" && listeners.add(listener),
  off: (name, listener) => listeners.delete(listener),
  send: (message) => {
    window.sent.push(message);
    if (!window.busy) window.askPython(JSON.stringify(message)).then(window.deliver);
  },
};
const script = URL.createObjectURL(new Blob([await window.getScript()], { type: "text/javascript" }));
const { default: widget } = await import(script);
window.end = widget.render({ model, el: document.getElementById("cell") });
"""


class Notebook:
    """A page with a cell that shows the widget."""

    def __init__(self, page: Page, widget: AttentionWidget) -> None:
        self.page, self.widget = page, widget
        self._outbox: list[tuple[dict[str, Any], list[str]]] = []
        widget.send = lambda content, buffers=None: self._outbox.append(
            (content, [base64.b64encode(data).decode() for data in buffers or []])
        )
        page.expose_function("askPython", self._receive)
        page.expose_function("getScript", lambda: widget._esm)
        page.set_content(
            "<!doctype html><style>h2, button, p { color: red; display: none }</style>"
            f'<body style="background: white">'
            f'<div class="attention-1">pictures</div><div id="cell"></div><script type="module">{_NOTEBOOK}</script>'
        )
        expect(page.get_by_role("application").first).to_have_attribute("data-exact", "true")
        expect(page.get_by_text("pictures")).to_be_hidden()

    def _receive(self, text: str) -> list[Any]:
        self.widget._handle_custom_msg(json.loads(text), [])
        return self._take()

    def _take(self) -> list[Any]:
        sent, self._outbox = self._outbox, []
        return sent

    def deliver(self) -> None:
        """Deliver what Python has sent since the last request."""
        self.page.evaluate("messages => window.deliver(messages)", self._take())

    def head(self, layer: int, head: int) -> Locator:
        return self.page.locator(f'button.head[data-layer="{layer}"][data-head="{head}"]')

    def until(self, name: str, value: object) -> None:
        for _ in range(1500):
            if getattr(self.widget, name) == value:
                return
            self.page.wait_for_timeout(20)
        raise AssertionError(f"{name} stays {getattr(self.widget, name)}")


@pytest.fixture
def notebook(page: Page, cross: MapGroup) -> Notebook:
    return Notebook(page, AttentionWidget([cross, make_group(5, 5, "self", layers=1)], START))


def test_what_is_opened_here_is_open_there(notebook: Notebook) -> None:
    notebook.head(1, 2).click()
    notebook.until("head", 2)
    assert notebook.widget.site == "decoder.1.cross"
    notebook.page.locator(".line.queries .token").nth(2).click()
    notebook.until("pins", ("q2",))

    notebook.widget.open_head("decoder.0.cross", 1, ["k1"])
    notebook.deliver()
    expect(notebook.head(0, 1)).to_have_attribute("aria-selected", "true")
    expect(notebook.page.locator(".line.keys .token[aria-pressed=true]")).to_have_text(KEYS[1])

    notebook.head(0, 2).click()  # and the reader goes on from there
    notebook.until("head", 2)
    assert notebook.widget.pins == ("k1",)


def test_a_busy_kernel_is_asked_once(notebook: Notebook) -> None:
    page = notebook.page
    page.evaluate("window.busy = true; window.sent.length = 0")
    for layer, head in ((0, 1), (0, 2), (1, 0), (1, 1)):
        notebook.head(layer, head).click()
        page.wait_for_timeout(60)
    sent = page.evaluate("window.sent")
    assert len(sent) == 1
    page.evaluate("window.busy = false; window.askPython(JSON.stringify(window.sent[0])).then(window.deliver)")
    notebook.until("site", "decoder.1.cross")
    assert notebook.widget.head == 1
    assert page.evaluate("window.sent.length") == 2
    expect(notebook.head(1, 1)).to_have_attribute("aria-selected", "true")

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

from tests.browser.attention_view.live_view import (
    KEYS,
    LINK,
    QUERIES,
    START,
    TEXT,
    LiveView,
    colour,
    saved_npz,
    weight_in,
    weights_of,
)
from tests.viz_core.view.attention_groups import make_group
from viz_core.view.components import view_words
from viz_core.view.map_group import MapGroup
from viz_core.view.notebook import AttentionView
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


@pytest.mark.parametrize(("scale", "palette"), [("sqrt", "viridis"), ("log", "greys")])
def test_a_picture_is_read_alike_everywhere_and_says_what_it_is(
    page: Page, live: LiveView, cross: MapGroup, scale: str, palette: str
) -> None:
    live.part("more").locator("summary").click()
    live.option("scaleChoice", scale).click()
    live.option("palette", palette).click()
    svg = live.save("svg").decode()
    tree = ElementTree.fromstring(svg)  # whatever the tokens hold
    metadata = "".join(tree.itertext())
    assert tree.findtext("{*}title") == "Cross · Layer 1, head 1"
    for text in ("Model: some-model, revision 1a2b.", f"“{TEXT}”", "queries: French", "<eos>", page.url):
        assert text in metadata
    scaled_by = {"sqrt": "square root", "linear": "", "log": "logarithm"}[scale]
    assert (f"colour: {scaled_by}" in metadata) == bool(scaled_by)
    colours = {value for node in tree.iter() for name in ("fill", "stroke") if (value := node.get(name))}
    assert all(re.fullmatch("#[0-9a-f]{6}|none", each) for each in colours)

    saved = Image.open(io.BytesIO(live.save("png")))
    info = saved.text  # type: ignore[attr-defined]
    assert (info["Title"], info["Source"]) == ("Cross · Layer 1, head 1", page.url)
    assert f"“{TEXT}”" in info["Description"]

    expected = [colour(weight, scale, palette) for weight in weights_of(cross, 0, 0).flat]
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


def test_a_picture_of_a_dark_page_is_the_same_dark_on_white(page: Page, live: LiveView) -> None:
    on_white = live.save("svg")
    dark = "--st-text-color: #e7e5df; --st-background-color: #14181a; --st-chart-categorical-colors: #56b4e9,#f08c42;"
    page.add_style_tag(content=f":root {{ {dark} }}")
    page.evaluate("window.dispatchEvent(new Event('resize'))")
    page.set_viewport_size({"width": 1399, "height": 900})  # drawn again
    expect(page.locator(".view")).to_have_attribute("data-theme", "dark")
    page.set_viewport_size({"width": 1400, "height": 1000})
    assert re.findall('fill="(#.*?)"', live.save("svg").decode()) == re.findall('fill="(#.*?)"', on_white.decode())


def test_the_whole_grid_is_one_figure(live: LiveView) -> None:
    svg = live.save("grid-svg").decode()
    assert live.file == "attention-cross-all-heads.svg"
    assert svg.count("<image ") == 6
    assert "<title>Cross · All heads</title>" in svg
    cairosvg.svg2png(svg.encode())
    assert Image.open(io.BytesIO(live.save("grid-png"))).size[0] > 3 * 400


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


def test_a_notebook_shows_the_same_view(browser: Browser, cross: MapGroup, tmp_path: Path) -> None:
    file = tmp_path / "notebook.html"
    file.write_text(f"<!doctype html><meta charset=utf-8><p>Out[1]:</p>{AttentionView([cross])._repr_html_()}", "utf-8")
    context = browser.new_context(offline=True, viewport={"width": 1100, "height": 900})
    page = context.new_page()
    page.goto(file.as_uri())
    frame = page.frame_locator("iframe")
    frame.locator('button.head[data-layer="1"][data-head="2"]').click()
    stage = frame.get_by_role("application").first
    stage.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    tip = frame.locator("[data-piece=tip]").first
    expect(tip).to_contain_text(f"{QUERIES[2]} → {KEYS[1]}")
    assert weight_in(tip.inner_text()) == pytest.approx(weights_of(cross, 1, 2)[2, 1], abs=0.0051)
    context.close()


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
    expect(opened.locator("[data-export=page]")).to_be_hidden()
    opened.locator("[data-part=exports] summary").click()
    with opened.expect_download() as download:
        opened.locator("[data-export=svg]").click()
    assert LINK in download.value.path().read_text("utf-8")
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


def test_the_notebooks_styles_stay_outside(notebook: Notebook) -> None:
    heading = notebook.page.get_by_role("heading", name="Read it on the sentence")
    expect(heading).to_be_visible()
    expect(heading).not_to_have_css("color", "rgb(255, 0, 0)")


def test_it_follows_the_notebook_into_the_dark(notebook: Notebook) -> None:
    root = notebook.page.locator("[data-part=root]")
    expect(root).to_have_attribute("data-theme", "light")
    notebook.page.evaluate("document.body.style.background = '#111'")
    expect(root).to_have_attribute("data-theme", "dark")
    notebook.head(1, 0).click()
    notebook.until("site", "decoder.1.cross")
    expect(root).to_have_attribute("data-theme", "dark")
    notebook.page.evaluate("document.body.dataset.jpThemeLight = 'true'")  # as JupyterLab, whose styles come later
    expect(root).to_have_attribute("data-theme", "light")


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


def test_saving_offers_what_a_notebook_can(notebook: Notebook) -> None:
    page = notebook.page
    page.locator("[data-part=exports] summary").click()
    expect(page.locator("[data-export=svg]")).to_be_visible()
    expect(page.locator("[data-export=link]")).to_be_hidden()
    with page.expect_download() as download:
        page.locator("[data-export=page]").click()
    assert download.value.path().read_text("utf-8") == notebook.widget.page()
    page.locator("[data-part=exports] summary").click()
    with page.expect_download() as download:
        page.locator("[data-export=notebook]").click()
    assert download.value.suggested_filename.endswith(".ipynb")
    assert "shown = view(recording, tokens, keys)" in download.value.path().read_text("utf-8")


def test_a_problem_is_said_in_the_cell(notebook: Notebook) -> None:
    notebook.page.evaluate("window.deliver([[{ problem: 'a tensor was changed' }, []]])")
    expect(notebook.page.get_by_role("alert")).to_have_text("a tensor was changed")
    notebook.head(1, 2).click()
    expect(notebook.page.get_by_role("alert")).to_be_hidden()


def test_a_cell_that_is_cleared_listens_no_longer(notebook: Notebook) -> None:
    notebook.page.evaluate("window.end()")
    sent = notebook.page.evaluate("window.sent.length")
    notebook.widget.head = 2
    notebook.deliver()
    notebook.page.wait_for_timeout(100)
    assert notebook.page.evaluate("window.sent.length") == sent

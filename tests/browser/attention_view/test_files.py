"""What the view saves, opened and compared with the numbers of the library."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from xml.etree import ElementTree

import cairosvg
import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from tests.browser.attention_view.live_view import (
    KEYS,
    LINK,
    QUERIES,
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

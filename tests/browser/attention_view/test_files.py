"""What the view saves, opened and compared with the numbers of the library."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, expect

from tests.browser.attention_view.live_view import LiveView
from tests.browser.attention_view.reading import KEYS, QUERIES, colour, saved_npz, weight_in, weights_of
from viz_core.view.map_group import MapGroup
from viz_core.view.notebook import AttentionView


def test_numbers_are_saved(live: LiveView, cross: MapGroup) -> None:
    weights = weights_of(cross, 0, 0)
    table = list(csv.reader(io.StringIO(live.save("csv").decode())))
    assert table[0] == ["", *KEYS]
    assert [row[0] for row in table[1:]] == list(QUERIES)
    np.testing.assert_array_equal(np.array([row[1:] for row in table[1:]], dtype=np.float32), weights)

    saved = saved_npz(live)
    np.testing.assert_array_equal(saved["weights"], weights)
    assert (tuple(saved["queries"]), tuple(saved["keys"])) == (QUERIES, KEYS)
    assert (list(saved["first"]), list(saved["units_per_cell"])) == ([0, 0], [1, 1])

    svg = live.save("svg").decode()
    assert svg.count("<rect ") == 1 + weights.size  # paper and cells
    assert "<title>Layer 1, head 1</title>" in svg
    assert "&#60;eos&#62;" in svg


@pytest.mark.parametrize(("scale", "palette"), [("sqrt", "viridis"), ("linear", "greys"), ("log", "viridis")])
def test_every_cell_of_a_picture_has_the_colour_of_its_weight(
    live: LiveView, cross: MapGroup, scale: str, palette: str
) -> None:
    live.part("more").locator("summary").click()
    live.option("scaleChoice", scale).click()
    live.option("palette", palette).click()
    expected = [colour(weight, scale, palette) for weight in weights_of(cross, 0, 0).flat]
    svg = live.save("svg").decode()
    translation = re.search(r"translate\(([\d.]+) ([\d.]+)\)", svg)
    assert translation
    x0, y0 = float(translation[1]), float(translation[2])
    picture = Image.open(io.BytesIO(live.save("png"))).convert("RGB")
    width = re.search(r'<svg [^>]*width="([\d.]+)"', svg)
    assert width
    assert picture.width == 3 * float(width[1])
    shape = r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" fill="rgb\((\d+), (\d+), (\d+)\)"'
    cells = [tuple(map(float, found)) for found in re.findall(shape, svg)][-len(expected) :]
    assert len(cells) == len(expected)
    for (x, y, w, h, *drawn), wanted in zip(cells, expected, strict=True):
        pixel = picture.getpixel((round(3 * (x0 + x + w / 2)), round(3 * (y0 + y + h / 2))))
        np.testing.assert_allclose(drawn, wanted, atol=1)
        np.testing.assert_allclose(pixel, wanted, atol=1)


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
    context.close()

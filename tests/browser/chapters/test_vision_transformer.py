"""The vision chapter in a browser: upload, click a patch, change the head, see the overlay change; values are checked.

Everything here needs the shipped models vit-fashion-mnist and vit-cifar10.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.browser.attention_view.live_view import patch_place
from tests.browser.chapters.over_the_picture import GRID, click_patch, expect_read, stage_of
from tests.browser.page_checks import box_of, chart
from tests.viz_core.images.hostile_pictures import encode
from viz_core.images.drawn import drawn_picture
from viz_core.images.open_image import open_picture
from viz_core.pretrained import ImageClassifier, load_classifier


@pytest.fixture(scope="module")
def model() -> ImageClassifier:
    return load_classifier("vit-fashion-mnist", "cpu")


def overlay(page: Page) -> np.ndarray:
    """The colours of the middles of all patches, with the picture beneath."""
    stage = stage_of(page)
    places = [patch_place(stage, GRID, row, column) for row in range(GRID[0]) for column in range(GRID[1])]
    read = """(stage, places) => { const canvas = stage.querySelector('[data-piece=ground]');
      const ratio = canvas.width / canvas.clientWidth, context = canvas.getContext('2d');
      return places.map(([x, y]) => [...context.getImageData(x * ratio, y * ratio, 1, 1).data].slice(0, 3)); }"""
    return np.array(stage.evaluate(read, places))


def test_upload_click_a_patch_change_the_head(page: Page, app_url: str, model: ImageClassifier) -> None:
    """A drawing that only says it is a picture gets a sentence; then a picture."""
    content = encode(drawn_picture("bag"), "PNG")
    found = model.classify(open_picture(content))
    page.goto(f"{app_url}/vision-transformer?vt-source=Upload&vt-model=Garments&vt-open-lab=true")
    svg = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
    page.locator("input[type=file]").set_input_files({"name": "x.png", "mimeType": "image/png", "buffer": svg})
    expect(page.get_by_text("This is an SVG drawing, whatever its name says.")).to_be_visible()
    file = {"name": "a bag.png", "mimeType": "image/png", "buffer": content}
    page.locator("input[type=file]").set_input_files(file)
    percent = f"{100 * found.probabilities[found.label]:.1f}%"
    expect(page.get_by_role("heading", name=f"Prediction: {found.label}, {percent}")).to_be_visible()
    expect_read(page, found, 4, 0, 0)
    class_token = overlay(page)

    click_patch(page, 2, 5)
    expect(page.locator("[data-part=sentenceNote]")).to_contain_text("Pinned: row 3, column 6.")
    token = 1 + 2 * 7 + 5
    expect_read(page, found, 4, 0, token)
    patch = overlay(page)
    assert np.abs(patch - class_token).max() > 10
    expect(page.get_by_text("Three measures of what the patch in row 3, column 6 is made of.")).to_be_visible()

    page.locator('button[data-layer="1"][data-head="3"]').click()
    expect_read(page, found, 1, 3, token)
    assert np.abs(overlay(page) - patch).max() > 10
    page.wait_for_url(re.compile(r"head=encoder-self\.1\.3.*pin=q20|pin=q20.*head=encoder-self\.1\.3"))
    page.keyboard.press("Escape")
    expect_read(page, found, 1, 3, 0)


def test_draw_undo_and_clear(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/vision-transformer?vt-source=Draw")
    paper = page.get_by_role("application", name=re.compile("Drawing area"))
    expect(paper).to_be_visible()
    expect(page.get_by_text("Draw a garment, large and filled in")).to_be_visible()
    page.get_by_role("button", name="Brush 54").click()
    box = box_of(paper)
    for x in (0.35, 0.65):  # two legs
        page.mouse.move(box["x"] + x * box["width"], box["y"] + 0.15 * box["height"])
        page.mouse.down()
        page.mouse.move(box["x"] + x * box["width"], box["y"] + 0.9 * box["height"], steps=5)
        page.mouse.up()
    expect(page.get_by_role("heading", name="Prediction:")).to_be_visible()
    page.get_by_role("button", name="Clear").click()
    expect(page.get_by_role("heading", name="Prediction:")).to_have_count(0)
    paper.focus()
    for key in ("Space", "Shift+ArrowDown", "Shift+ArrowDown", "Space"):
        page.keyboard.press(key)
    expect(page.get_by_role("heading", name="Prediction:")).to_be_visible()
    page.keyboard.press("Control+z")
    expect(page.get_by_role("heading", name="Prediction:")).to_have_count(0)


def test_a_click_on_the_grid_pins_the_patch_above(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/vision-transformer?vt-section=Patches")
    plot = chart(page, "grid").locator(".nsewdrag").first
    box = box_of(plot)
    page.mouse.click(box["x"] + box["width"] * 1.5 / 7, box["y"] + box["height"] * 4.5 / 7)
    expect(page.locator("[data-part=sentenceNote]")).to_contain_text("Pinned: row 5, column 2.")

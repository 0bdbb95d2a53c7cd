"""The vision chapter and the sinusoidal table in a browser: values that are pointed at are checked."""

import re
from itertools import pairwise

import numpy as np
import pytest
import torch
from playwright.sync_api import Locator, Page, expect

from tests.browser.attention_view.live_view import patch_place, weight_in
from tests.browser.page_checks import box_of, chart, expect_rest
from tests.viz_core.images.hostile_pictures import encode
from viz_core.images.open_image import open_picture
from viz_core.lessons.sinusoidal_encoding import wavelengths
from viz_core.positional import sinusoidal_table
from viz_core.pretrained import Classification, ImageClassifier, load_classifier
from viz_core.pretrained.samples import drawn_picture

GRID = (7, 7)


def picture_of(page: Page) -> Locator:
    return page.locator(".view[data-mode=picture] [data-piece=stage]").first


def click_patch(page: Page, row: int, column: int) -> None:
    x, y = patch_place(picture_of(page), GRID, row, column)
    picture_of(page).click(position={"x": x, "y": y})
    page.mouse.move(0, 0)  # away, so that what is said is of all patches and not of the one pointed at


def expect_read(page: Page, found: Classification, layer: int, head: int, token: int) -> None:
    """The note under the picture says where this token looks most, and with which weight."""
    weights = found.trace[f"encoder.{layer}.self"].weights(head=head)[0, token]
    best = int(weights.argmax())
    name = "[CLS]" if best == 0 else f"row {(best - 1) // 7 + 1}, column {(best - 1) % 7 + 1}"
    note = page.locator("[data-part=sentenceNote]")
    expect(note).to_contain_text(f"looks most at {name}")
    assert weight_in(note.inner_text().rstrip(". ")) == pytest.approx(float(weights[best]), abs=0.0051)


@pytest.fixture(scope="module")
def model() -> ImageClassifier:
    return load_classifier("vit-fashion-mnist", "cpu")


def overlay(page: Page) -> np.ndarray:
    """The colours of the middles of all patches, with the picture beneath."""
    stage = picture_of(page)
    places = [patch_place(stage, GRID, row, column) for row in range(GRID[0]) for column in range(GRID[1])]
    read = """(stage, places) => { const canvas = stage.querySelector('[data-piece=ground]');
      const ratio = canvas.width / canvas.clientWidth, context = canvas.getContext('2d');
      return places.map(([x, y]) => [...context.getImageData(x * ratio, y * ratio, 1, 1).data].slice(0, 3)); }"""
    return np.array(stage.evaluate(read, places))


def test_upload_click_a_patch_change_the_head(page: Page, app_url: str, model: ImageClassifier) -> None:
    """A drawing that only says it is a picture gets a sentence; then a picture."""
    content = encode(drawn_picture("bag"), "PNG")
    found = model.classify(open_picture(content))
    page.goto(
        f"{app_url}/vision-transformer?vt-source=Upload&vt-model=Garments&vt-open-lab=true&head=encoder-self.4.0&pin=q0"
    )
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


def test_another_patch_sends_its_view_alone(page: Page, app_url: str) -> None:
    """In messages: less than a fifth of those of the page."""
    received: list[object] = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda data: received.append(data)))
    page.goto(f"{app_url}/vision-transformer")
    picture_of(page).wait_for()
    expect_rest(page)
    opened = len(received)
    click_patch(page, 2, 3)
    expect(page.locator("[data-part=sentenceNote]")).to_contain_text("Pinned: row 3, column 4.")
    expect(page).to_have_url(re.compile(r"pin=q18"))
    expect_rest(page)
    assert len(received) - opened < opened / 5


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


CELL = re.compile(r"position (\d+) · dimension (\d+): (−?[\d.]+)")


def stage_of(page: Page) -> Locator:
    return page.get_by_role("application").first


def pointed_at(page: Page) -> tuple[int, int, float]:
    """Position, dimension and value of the cell whose value is on the screen."""
    tip = stage_of(page).locator(".tip")
    expect(tip).to_contain_text(CELL)
    found = CELL.search(tip.inner_text())
    assert found
    return int(found[1]), int(found[2]), float(found[3].replace("−", "-"))


def hover(page: Page, across: float, down: float) -> tuple[int, int, float]:
    """Point somewhere between the left and right, top and bottom of the map."""
    box = box_of(stage_of(page))
    top = float((stage_of(page).get_attribute("data-area") or "").split()[1])  # above it are the clocks
    x, y = box["x"] + 60 + across * (box["width"] - 80), box["y"] + top + down * (box["height"] - top - 52)
    page.mouse.move(x, y)
    return pointed_at(page)


def expect_rows_in_their_colours(stage: Locator) -> None:
    """Row 0 is 0, 1, 0, 1, ...: pale and dark red in turn."""
    top = float((stage.get_attribute("data-area") or "").split()[1])  # above it are the clocks
    row = stage.locator("canvas").first.evaluate(
        """(canvas, top) => {
            const below = top * devicePixelRatio + 2;
            const { data, width } = canvas.getContext("2d").getImageData(0, below, canvas.width, 1);
            return Array.from({ length: width }, (_, x) => [...data.slice(4 * x, 4 * x + 4)]);
        }""",
        top,
    )
    # Opaque and not the grey of a label.
    cells = [
        red < 150 for red, green, _, opacity in row if opacity == 255 and (green > 240 or (red > 90 and green < 10))
    ]
    assert len(cells) > 500
    assert sum(a != b for a, b in pairwise(cells)) == 31


def test_a_step_of_the_slider_makes_a_new_table_and_new_claims_and_opened_code_stays_in_the_link(
    page: Page, app_url: str
) -> None:
    page.goto(f"{app_url}/sinusoidal-encoding")
    stage = stage_of(page)
    expect(stage).to_have_attribute("data-columns", "32")
    page.mouse.move(0, 0)
    expect_rows_in_their_colours(stage)
    slider = page.locator('input[aria-label="Dimensions d"]')
    slider.focus()
    slider.press("ArrowRight")
    slider.press("ArrowRight")
    expect(stage).to_have_attribute("data-columns", "34")
    expect(page.get_by_text("every row has the same squared length, d/2 = 17")).to_be_attached()
    longest = float(wavelengths(34)[-1])
    expect(page.get_by_text(f"from 6.28 to {longest:,.2f}")).to_be_attached()
    P = sinusoidal_table(60, 34, dtype=torch.float64)
    seen = {hover(page, across, down) for across, down in [(0.1, 0.1), (0.4, 0.9), (0.9, 0.5)]}
    assert len(seen) == 3
    for position, dimension, value in seen:
        assert value == pytest.approx(float(P[position, dimension]), abs=1e-6)

    page.locator(".st-key-section-library summary").first.click()
    page.get_by_text("The code behind this page").click()
    expect(page.get_by_text("def sinusoidal_table")).to_be_visible()
    page.wait_for_url(re.compile("se-code=true"))
    page.reload()
    expect(page.get_by_text("def sinusoidal_table")).to_be_visible()


def test_every_cell_of_the_largest_table_is_exact_and_a_part_can_be_enlarged_and_left_again(
    page: Page, app_url: str
) -> None:
    page.goto(f"{app_url}/sinusoidal-encoding?se-d=512&se-n=2000")
    stage = stage_of(page)
    expect(stage).to_have_attribute("data-rows", "2000")
    P = sinusoidal_table(2000, 512, dtype=torch.float64)
    spots = [(i / 7, (3 * i % 8) / 8) for i in range(8)]
    seen = [hover(page, across, down) for across, down in spots]
    assert len({position for position, _, _ in seen}) == 8
    # By keys: the first cell, then the last column ten rows down, then one row more.
    stage.focus()
    page.mouse.move(0, 0)
    expect(stage.locator(".tip")).to_be_hidden()
    for key in ("ArrowDown", "End", "PageDown", "ArrowDown"):
        page.keyboard.press(key)
    seen.append(pointed_at(page))
    assert seen[-1][:2] == (11, 511)
    expect(page.locator("[aria-live]").filter(has_text="position 11 · dimension 511")).to_be_attached()
    for position, dimension, value in seen:
        assert value == pytest.approx(float(P[position, dimension]), abs=1e-6)

    box = box_of(stage)
    page.mouse.move(box["x"] + 300, box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] + 330, box["y"] + 210, steps=4)
    page.mouse.up()
    whole = page.get_by_role("button", name="Reset zoom")
    expect(whole).to_be_visible()
    top, bottom = hover(page, 0.02, 0.02), hover(page, 0.02, 0.9)
    assert 20 <= bottom[0] - top[0] <= 60  # ten pixels were about forty of the 2,000 rows
    assert top[2] == pytest.approx(float(P[top[0], top[1]]), abs=1e-6)
    whole.click()
    expect(whole).to_be_hidden()
    assert hover(page, 0.02, 0.95)[0] > 1500

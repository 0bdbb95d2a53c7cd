"""Journeys through chapters of formulas and pictures, whose values that are pointed at are checked."""

import math
import re

import numpy as np
import pytest
import torch
from playwright.sync_api import Locator, Page, expect

from tests.browser.attention_view.live_view import patch_place, weight_in
from tests.browser.page_checks import box_of, chart, expect_rest
from tests.viz_core.images.hostile_pictures import encode
from ui.text.numbers import localised
from viz_core.images.open_image import open_picture
from viz_core.lessons.relative_projection import projection_residual
from viz_core.lessons.sinusoidal_encoding import wavelengths
from viz_core.positional import sinusoidal_rows, sinusoidal_table
from viz_core.pretrained import Classification, ImageClassifier, load_classifier
from viz_core.pretrained.samples import drawn_picture


def hand(position: int, pair: int) -> str:
    row = sinusoidal_rows(torch.tensor([position]), 32, dtype=torch.float64)[0]
    return ", ".join(f"{value:.4f}" for value in row[2 * pair : 2 * pair + 2].tolist()).replace("-", "−")


def claimed_residual(page: Page) -> Locator:
    """How far the first badge is off, where the reader comes to it."""
    claim = page.locator(".st-key-claim-moves")
    page.locator('[class*="st-key-checks-"]').filter(has=claim).locator("summary").scroll_into_view_if_needed()
    return claim.locator("code")


def test_step_the_offset_change_the_number_type_and_read_the_new_numbers(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/relative-projection")
    expect(page.get_by_role("cell", name=f"({hand(8, 3)})")).to_be_visible()
    offset = page.locator('input[aria-label="Offset δ"]')
    offset.focus()
    for _ in range(7):
        offset.press("ArrowRight")
    expect(page.get_by_role("cell", name=f"({hand(15, 3)})")).to_be_visible()
    expect(page).to_have_url(re.compile(r"rp-offset=12\b"))
    page.get_by_role("button", name="More").click()
    pair = page.locator('input[aria-label="Pair j"]')
    pair.focus()
    pair.press("ArrowLeft")
    expect(page.get_by_role("cell", name=f"({hand(15, 2)})")).to_be_visible()
    circle = chart(page, "rotation")
    expect(circle.get_by_text("dimension 4: sine")).to_be_visible()
    residual = float(projection_residual(12, 32, torch.arange(1000)).max())
    expect(claimed_residual(page)).to_have_text(localised(f"{residual:.2g}", "en"))

    page.get_by_role("radio", name="bfloat16").click()
    residual = float(projection_residual(12, 32, torch.arange(1000), dtype=torch.bfloat16).max())
    expect(claimed_residual(page)).to_have_text(localised(f"{residual:.2g}", "en"))
    expect(page).to_have_url(re.compile("rp-type=bfloat16"))


INKED = """(canvas, points) => points.map(([x, y]) => {
  const ratio = devicePixelRatio;
  return canvas.getContext("2d").getImageData(Math.round(x * ratio), Math.round(y * ratio), 1, 1).data[3];
})"""


def test_a_row_of_the_table_sets_its_clocks(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/sinusoidal-encoding")
    stage = page.locator(".heatmap .stage[data-area]")
    stage.focus()
    left, top, right, _ = map(float, (stage.get_attribute("data-area") or "").split())
    for row in range(3):
        stage.press("ArrowDown")  # the first press points at row 0
        for pair in (0, 1, 15):
            x, y, angle = left + (right - left) * (2 * pair + 1) / 32, top - 17, row * 10_000 ** (-2 * pair / 32)
            ends = [[x + side * 6 * math.sin(angle), y - side * 6 * math.cos(angle)] for side in (1, -1)]
            hand, opposite = stage.locator("canvas[data-part=marks]").evaluate(INKED, ends)
            assert hand > 100 > opposite


CLOSER = "pe-section=One+scheme%2C+closer"
GRID_WIDTH = 6


def test_a_click_on_a_cell_makes_it_the_query(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/position-embeddings?{CLOSER}&pe-scheme=Relative%2C+2-D&pe-grid-width={GRID_WIDTH}")
    row, column = (page.locator(f'input[aria-label="Query in {side}"]') for side in ("row", "column"))
    expect(row).to_have_value("2")
    cell = chart(page, "grid").locator(".scatterlayer .point").nth(3 * GRID_WIDTH + 4)  # row 4, column 5
    cell.scroll_into_view_if_needed()
    box = box_of(cell)
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x - 2, y - 2)
    page.mouse.move(x, y)
    expect(page.locator(".hoverlayer .hovertext")).to_be_visible()  # the point under the pointer is known
    page.mouse.click(x, y)
    expect(row).to_have_value("4")
    expect(column).to_have_value("5")
    expect(page.get_by_label(re.compile("seen from row 4, column 5"))).to_be_attached()


def lines_drawn(page: Page) -> list[str]:
    """Names of the curves that the figure shows: those with a finite number."""
    plot = chart(page, "fit").locator(".js-plotly-plot")
    return plot.evaluate(
        """({ _fullData: all }) => all
            .filter(({ mode, y }) => mode === "lines" && Array.from(y).some(Number.isFinite))
            .map(({ name }) => name)"""
    )


# Notes each curve that is drawn after the guess, which is the first path of the board.
NOTE_CURVES = """(paper) => {
  globalThis.curves = [];
  const note = () => curves.push(...[...paper.querySelectorAll("path")].slice(1).map((path) => path.getAttribute("d")));
  new MutationObserver(note).observe(paper, { childList: true });
}"""
# Points of the fit, in pixels of the figure.
FIT = """({ _fullData: all, _fullLayout: { xaxis, yaxis } }) => {
  const { x, y } = all.find(({ name }) => name === "fit");
  return [[xaxis, x], [yaxis, y]].map(([axis, values]) => Array.from(values, (each) => axis._offset + axis.d2p(each)));
}"""


def points(path: str | None) -> np.ndarray:
    return np.array(re.findall(r"[ML]([\d.]+) ([\d.-]+)", path or ""), dtype=float).T


def test_draw_a_fit_by_mouse_and_keys_and_see_what_comes_out(page: Page, app_url: str) -> None:
    """On the figure itself, which shows no fit before; then the guess stays, and a curve moves from it to the fit."""
    page.emulate_media(reduced_motion="no-preference")
    page.goto(f"{app_url}/attention-pooling?ap-open-numbers=true")
    card = page.locator(".st-key-exercise-wide")
    card.get_by_text("Draw it on the figure").click()
    expect(page).to_have_url(re.compile("ap-guess-wide-drawn=true"))
    expect(page).to_have_url(re.compile("ap-width=1"))
    assert lines_drawn(page) == []
    paper, reveal = card.get_by_role("slider", name="Your curve"), card.get_by_role("button", name="Reveal")
    expect(reveal).to_be_disabled()
    expect(paper).to_be_in_viewport(ratio=0.99)
    paper.click(position={"x": 530, "y": 100})
    paper.press("ArrowRight")
    expect(paper).to_have_attribute("aria-valuetext", re.compile(r"^3: "))
    paper.press("ArrowUp")
    expect(paper).to_have_attribute("aria-valuenow", re.compile("^5"))
    paper.evaluate(NOTE_CURVES)
    reveal.click()
    reply = card.locator(".stMarkdown").get_by_text("Not quite.")
    expect(reply).to_be_visible()
    expect(page).to_have_url(re.compile(r"ap-guess-wide=\d{42}$"))
    for place in (card.locator(".verdict"), page.locator(".st-key-figure-fit")):  # the reader need not scroll
        expect(place).to_be_in_viewport(ratio=0.99)
    expect(card.locator(".verdict")).to_contain_text("Not quite.")
    expect(paper.locator("path")).to_have_count(1)
    guess, first, last = map(
        points, (paper.locator("path").get_attribute("d"), *page.evaluate("[curves[0], curves.at(-1)]"))
    )
    plot = chart(page, "fit").locator(".js-plotly-plot")
    fit = np.interp(last[0], *plot.evaluate(FIT))
    distances = [float(np.abs(heights - fit).max()) for _, heights in (guess, first, last)]
    assert distances[0] == pytest.approx(distances[1], rel=0.25)
    assert distances[2] < 6 < distances[0] / 4
    page.reload()
    expect(card.get_by_role("button", name="Draw again")).to_be_visible()
    assert lines_drawn(page) == ["true curve", "fit"]


# Notes where the ring's first move begins and ends, and where the guess is then.
NOTE_RING = """(layer) => new MutationObserver(() => {
  const moves = layer.querySelector(".ring")?.getAnimations() ?? [];
  const { effect, transitionProperty: side } = moves.find((each) => /left|top/.test(each.transitionProperty)) ?? {};
  if (effect) globalThis.ring ??= [...effect.getKeyframes(), layer.querySelector("[aria-checked=true]").style]
    .map((each) => parseFloat(each[side]));
}).observe(layer, { childList: true, subtree: true, attributes: true })"""


@pytest.mark.parametrize(
    ("question", "place", "read"),
    [
        ("linear-attention.twice", ".st-key-figure-state .js-plotly-plot", "({ data: [bars] }) => bars.y[0]"),
        ("multi-head.other", ".head[data-head='7'] canvas", "(canvas) => canvas.toDataURL()"),
    ],
)
def test_from_a_wrong_mark_which_stays_a_ring_moves_to_the_last_where_the_figure_changes(
    page: Page, app_url: str, question: str, place: str, read: str
) -> None:
    chapter, _, name = question.partition(".")
    page.emulate_media(reduced_motion="no-preference")
    page.goto(f"{app_url}/{chapter}")
    card, shown = page.locator(f".st-key-exercise-{name}"), page.locator(place).first
    marks, ring = card.locator(".layer .mark"), card.locator(".ring")
    card.get_by_role("button", name="Choose on the figure").click()
    expect(marks.last).to_be_visible()
    expect_rest(page)
    before = shown.evaluate(read)
    card.locator(".layer").evaluate(NOTE_RING)
    marks.first.click()
    page.wait_for_function("globalThis.ring")
    begins, ends, guess = page.evaluate("ring")
    assert begins == pytest.approx(guess, abs=1) != pytest.approx(ends, abs=20)
    expect(marks.locator("visible=true")).to_have_count(2)  # the guess, and what is right
    at_the_last = "([ring, { style }]) => ['left', 'top'].every((side) => ring.style[side] === style[side])"
    page.wait_for_function(at_the_last, arg=[ring.element_handle(), marks.last.element_handle()])
    expect_rest(page)
    assert shown.evaluate(read) != before


def test_type_scores_and_lose_nothing(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/scoring-functions?sf-open-mask=true")
    weights = chart(page, "weights")
    expect(weights.get_by_text("0.269", exact=True)).to_be_visible()  # the book's row
    scores = page.locator(".st-key-sf-scores textarea")
    scores.fill("0 0 five\n1 2 3")
    scores.press("Control+Enter")
    expect(page.get_by_text("Line 1 contains five, which is not a number")).to_be_visible()
    expect(scores).to_have_value("0 0 five\n1 2 3")
    lengths = page.locator('input[aria-label^="Valid lengths"]')
    lengths.fill("2 0")
    lengths.press("Enter")
    scores.fill("0 0 5\n1 2 3")
    scores.press("Control+Enter")
    expect(weights.get_by_text("0.500", exact=True)).to_have_count(2)
    expect(page.get_by_text("batch 1, query 2: every key is masked")).to_be_visible()
    expect(page).to_have_url(re.compile(r"sf-scores=0.0.5%0A1.2.3"))
    address = page.url
    page.goto("about:blank")
    page.goto(address)  # what a colleague sees
    expect(chart(page, "weights").get_by_text("0.500", exact=True)).to_have_count(2)
    expect(page.locator(".st-key-sf-scores textarea")).to_have_value("0 0 5\n1 2 3")


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


CELL = re.compile(r"position (\d+) · dimension (\d+): (−?[\d.]+)")


def stage_of(page: Page) -> Locator:
    return page.get_by_role("application").first


def hover(page: Page, across: float, down: float) -> tuple[int, int, float]:
    """Point between the left and right, top and bottom of the map; return place and value of the cell that it says."""
    box = box_of(stage_of(page))
    top = float((stage_of(page).get_attribute("data-area") or "").split()[1])  # above it are the clocks
    x, y = box["x"] + 60 + across * (box["width"] - 80), box["y"] + top + down * (box["height"] - top - 52)
    page.mouse.move(x, y)
    tip = stage_of(page).locator(".tip")
    expect(tip).to_contain_text(CELL)
    found = CELL.search(tip.inner_text())
    assert found
    return int(found[1]), int(found[2]), float(found[3].replace("−", "-"))


def test_a_step_of_the_slider_makes_a_new_table_and_new_claims_and_opened_code_stays_in_the_link(
    page: Page, app_url: str
) -> None:
    page.goto(f"{app_url}/sinusoidal-encoding")
    stage = stage_of(page)
    expect(stage).to_have_attribute("data-columns", "32")
    page.mouse.move(0, 0)
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

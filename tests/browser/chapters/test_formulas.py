"""Journeys through chapters of formulas: relative projection, position schemes, pooling, scoring functions."""

import asyncio
import math
import re

import pytest
import torch
from playwright.sync_api import Locator, Page, expect

from benchmarks.visitors import Shown, visit
from tests.browser.page_checks import box_of, chart, scroll_to
from ui.text.numbers import localised
from viz_core.attention import gaussian, nadaraya_watson
from viz_core.lessons.attention_pooling import noisy_points
from viz_core.lessons.relative_projection import projection_residual
from viz_core.positional import sinusoidal_rows


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
    pair = page.locator('input[aria-label="Pair j"]')
    pair.focus()
    pair.press("ArrowLeft")
    expect(page.get_by_role("cell", name=f"({hand(15, 2)})")).to_be_visible()
    circle = chart(page, "rotation")
    expect(circle.get_by_text("dimension 4: sine")).to_be_visible()
    residual = float(projection_residual(12, 32, torch.arange(1000)).max())
    expect(claimed_residual(page)).to_have_text(localised(f"{residual:.2g}", "en"))

    page.get_by_role("button", name="More").click()
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


def test_a_slider_sends_its_table_alone(app_url: str) -> None:
    """In messages: less than half of those of the page, and of their bytes."""

    async def moved() -> tuple[Shown, Shown]:
        async with visit(app_url, timezone="Europe/Paris") as visitor:
            opened = await visitor.open("sinusoidal-encoding")
            return opened, await visitor.move("Positions n", 61)

    opened, answer = asyncio.run(moved())
    assert not answer.failed
    assert answer.messages < opened.messages / 2
    assert answer.size < opened.size / 2


def test_open_sections_and_marks_follow_the_table(page: Page, app_url: str) -> None:
    """The answer is marked on the table that it is about, and on no other."""
    page.goto(f"{app_url}/sinusoidal-encoding?se-guess-similar=2")
    ring, slider = page.locator(".marks .ring"), page.locator('input[aria-label="Positions n"]')
    expect(ring).to_have_count(1)
    for key, rings in (("ArrowRight", 0), ("ArrowRight", 0), ("ArrowLeft", 0), ("ArrowLeft", 1)):
        slider.press(key)
        expect(ring).to_have_count(rings)
    page.locator(".st-key-section-curves summary").click()
    curves = chart(page, "curves")
    expect(curves.get_by_label(re.compile("along 60 positions"))).to_be_attached()
    slider.press("ArrowRight")
    expect(curves.get_by_label(re.compile("along 61 positions"))).to_be_attached()
    expect(page.locator(".heatmap .stage").first).to_have_attribute("data-rows", "61")
    expect(page).to_have_url(re.compile(r"se-n=61\b"))


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


def answer(width: float, query: float) -> str:
    y_hat, _ = nadaraya_watson(*noisy_points(40, 1.0, 3), torch.tensor([query], dtype=torch.float64), gaussian(width))
    return f"{float(y_hat):.4f}"


def lines_drawn(page: Page) -> list[str]:
    """Names of the curves that the figure shows: those with a finite number."""
    plot = chart(page, "fit").locator(".js-plotly-plot")
    return plot.evaluate(
        """({ _fullData: all }) => all
            .filter(({ mode, y }) => mode === "lines" && Array.from(y).some(Number.isFinite))
            .map(({ name }) => name)"""
    )


def test_move_the_width_learn_it_and_take_it(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/attention-pooling?ap-open-numbers=true&ap-open-learn=true")
    card = page.locator(".st-key-section-numbers")
    expect(card.get_by_role("cell", name=answer(0.5, 2.5))).to_be_visible()
    width = page.locator('input[aria-label="Width"]')
    width.focus()
    for _ in range(5):
        width.press("ArrowLeft")
    expect(card.get_by_role("cell", name=answer(0.45, 2.5))).to_be_visible()
    expect(page).to_have_url(re.compile(r"ap-width=0\.45"))
    page.get_by_role("button", name="Use width 0.31").click()
    expect(card.get_by_role("cell", name=answer(0.31, 2.5))).to_be_visible()
    expect(page).to_have_url(re.compile(r"ap-width=0\.31"))


def test_draw_a_fit_by_mouse_and_keys_and_see_what_comes_out(page: Page, app_url: str) -> None:
    """On the figure itself, which shows no fit before; after, the drawing is in the address, and a link shows it."""
    page.goto(f"{app_url}/attention-pooling?ap-open-numbers=true")
    card = page.locator(".st-key-exercise-wide")
    switch = card.get_by_text("Draw it on the figure")
    switch.click()
    expect(page).to_have_url(re.compile("ap-guess-wide-drawn=true"))
    expect(page).to_have_url(re.compile("ap-width=1"))
    assert lines_drawn(page) == []
    paper, reveal = card.get_by_role("slider", name="Your curve"), card.get_by_role("button", name="Reveal")
    expect(reveal).to_be_disabled()
    paper.hover()
    paper.click(position={"x": 530, "y": 100})
    paper.press("ArrowRight")
    expect(paper).to_have_attribute("aria-valuetext", re.compile(r"^3: "))
    paper.press("ArrowUp")
    expect(paper).to_have_attribute("aria-valuenow", re.compile("^5"))
    reveal.click()
    reply = card.locator(".stMarkdown").get_by_text("Not quite.")
    expect(reply).to_be_visible()
    expect(page).to_have_url(re.compile(r"ap-guess-wide=\d{42}$"))
    for place in (card.locator(".verdict"), page.locator(".st-key-figure-fit")):  # the reader need not scroll
        expect(place).to_be_in_viewport(ratio=0.99)
    expect(card.locator(".verdict")).to_contain_text("Not quite.")
    page.reload()
    expect(card.get_by_role("button", name="Draw again")).to_be_visible()
    assert lines_drawn(page) == ["true curve", "fit"]
    over = [box_of(place) for place in (page.locator(".st-key-figure-fit .js-plotly-plot"), paper)]
    assert over[0] == pytest.approx(over[1], abs=1)
    card.get_by_role("button", name="Draw again").click()
    expect(reply).to_have_count(0)
    switch.click()
    expect(page.locator(".st-key-section-numbers").get_by_role("cell", name=answer(1.0, 2.5))).to_be_visible()


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


def test_a_row_of_weights_is_shaded_in_its_own_cells(page: Page, app_url: str) -> None:
    """By mouse the third cell, by keys the first; a masked cell left empty is part of the right answer."""
    page.goto(f"{app_url}/scoring-functions?sf-open-mask=true&sf-guess-row-drawn=true")
    card, grid = page.locator(".st-key-exercise-row"), page.locator(".st-key-figure-weights .js-plotly-plot")
    paper = card.get_by_role("slider", name="Your row of weights")
    scroll_to(card, paper)
    cell = grid.evaluate(
        """({ _fullLayout: { xaxis, yaxis } }) => ({
          x: xaxis._offset + xaxis.d2p(2), y: yaxis._offset + yaxis.d2p(-0.4) })"""
    )
    paper.click(position=cell)
    expect(paper).to_have_attribute("aria-valuetext", "3: 100%")
    paper.press("ArrowLeft")
    paper.press("ArrowLeft")
    paper.press("Shift+ArrowUp")
    expect(paper).to_have_attribute("aria-valuetext", re.compile(r"^1: 1\d%$"))
    card.get_by_role("button", name="Reveal").click()
    expect(card.get_by_text("Yes.", exact=True)).to_be_visible()
    expect(page).to_have_url(re.compile(r"sf-guess-row=1200\d\d00$"))


_NUMBERS_THAT_TOUCH = """(figure) => {
  const texts = [...figure.querySelectorAll(".heatmap-label text")];
  const boxes = texts.map((text) => ({ text: text.textContent, ...text.getBoundingClientRect().toJSON() }));
  const touches = (a, b) => Math.abs(a.y - b.y) < 2 && a.x < b.x && a.right > b.x - 1;
  return boxes.flatMap((a) => boxes.filter((b) => touches(a, b)).map((b) => `${a.text} ${b.text}`));
}"""


def test_the_weights_of_ten_keys_stay_apart_on_a_phone(page: Page, app_url: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{app_url}/scoring-functions?lang=pt-BR&sf-open-toy=true")
    figure = chart(page, "toy")
    expect(figure.locator(".heatmap-label text")).to_have_count(40)
    assert figure.evaluate(_NUMBERS_THAT_TOUCH) == []

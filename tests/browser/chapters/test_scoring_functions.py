"""A reader's journey: type scores, mistype one, mend it, mask a whole row, and open another tab by a link."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.page_checks import chart, scroll_to
from ui.text.words import languages

STILL = "[data-testid=stApp][data-test-script-state=notRunning]"


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


def test_an_example_masks_one_query_and_the_debugger_tells(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/scoring-functions?sf-open-mask=true")
    still = page.locator(STILL)
    page.get_by_role("button", name="A query with no key").click()
    expect(page.get_by_text("batch 1, query 1: every key is masked")).to_be_visible()
    expect(page.locator('input[aria-label^="Valid lengths"]')).to_have_value("0 4; 2 1")
    expect(page.locator(".st-key-card-book-float32")).to_contain_text("Changes its input")
    expect(page.locator(".st-key-card-bare-float32")).to_contain_text("NaN at length 0")
    expect(still).to_be_attached()
    page.locator(".st-key-section-scores summary").click()
    expect(page.locator(".st-key-card-additive")).to_contain_text("Queries whose largest weight")
    expect(still).to_be_attached()
    page.get_by_role("radio", name="widths 20 and 2").click()
    expect(page.locator(".st-key-card-dot")).to_contain_text("have no dot product")


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
    expect(card.get_by_text("Yes.")).to_be_visible()
    expect(page).to_have_url(re.compile(r"sf-guess-row=1200\d\d00$"))


_NUMBERS_THAT_TOUCH = """(figure) => {
  const texts = [...figure.querySelectorAll(".heatmap-label text")];
  const boxes = texts.map((text) => ({ text: text.textContent, ...text.getBoundingClientRect().toJSON() }));
  const touches = (a, b) => Math.abs(a.y - b.y) < 2 && a.x < b.x && a.right > b.x - 1;
  return boxes.flatMap((a) => boxes.filter((b) => touches(a, b)).map((b) => `${a.text} ${b.text}`));
}"""


@pytest.mark.parametrize("language", languages())
def test_the_weights_of_ten_keys_stay_apart_on_a_phone(page: Page, app_url: str, language: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{app_url}/scoring-functions?lang={language}&sf-open-toy=true")
    figure = chart(page, "toy")
    expect(figure.locator(".heatmap-label text")).to_have_count(40)
    assert figure.evaluate(_NUMBERS_THAT_TOUCH) == []

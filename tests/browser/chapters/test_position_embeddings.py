"""Position schemes in a real browser: step the skew, click a cell, train a table."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.page_checks import chart
from viz_core.lessons.position_embeddings.scheme_parts import STAGES, skew_stages

CLOSER = "pe-section=One+scheme%2C+closer"
GRID_WIDTH = 6


def test_playing_the_skew_moves_slider_words_and_picture_together(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/position-embeddings?{CLOSER}")
    slider = page.locator('input[aria-label="Step of the skew"]')
    expect(page.get_by_text("Step 0: scores by offset.")).to_be_visible()
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_text("Step 5: keep")).to_be_visible()  # a busy browser shows a step between for a moment alone
    expect(slider).to_have_value("5")
    rows, columns = skew_stages(4)[STAGES[5]].shape
    expect(page.get_by_label(re.compile(rf"{rows} rows, {columns} columns"))).to_be_attached()
    page.wait_for_url(re.compile("pe-step=5"))


def test_a_click_on_a_cell_makes_it_the_query(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/position-embeddings?{CLOSER}&pe-scheme=Relative%2C+2-D&pe-grid-width={GRID_WIDTH}")
    row, column = (page.locator(f'input[aria-label="Query in {side}"]') for side in ("row", "column"))
    expect(row).to_have_value("2")
    cell = chart(page, "grid").locator(".scatterlayer .point").nth(3 * GRID_WIDTH + 4)  # row 4, column 5
    cell.scroll_into_view_if_needed()
    box = cell.bounding_box()
    assert box
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x - 2, y - 2)
    page.mouse.move(x, y)
    expect(page.locator(".hoverlayer .hovertext")).to_be_visible()  # the point under the pointer is known
    page.mouse.click(x, y)
    expect(row).to_have_value("4")
    expect(column).to_have_value("5")
    expect(page.get_by_label(re.compile("seen from row 4, column 5"))).to_be_attached()

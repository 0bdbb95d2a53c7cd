"""A reader's journeys: edit the table of names, and move weights by typing and by dragging."""

from __future__ import annotations

import json
import re
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Locator, Page, expect

from tests.browser.page_checks import box_of, expect_rest

ROW = 35  # pixels of a row of Streamlit's table, its head included


def open_names(page: Page, app_url: str) -> Locator:
    """The table of names, to edit, and the section that looks them up in other ways."""
    page.goto(f"{app_url}/queries-keys-values?qkv-open-ways=true")
    page.get_by_text("Edit the names").click()
    card = page.locator(".st-key-section-ways")
    expect(answer(card, "Li → Mu")).to_be_visible()
    return card


def in_address(page: Page, name: str) -> object:
    found = parse_qs(urlsplit(page.url).query).get(name)
    return json.loads(found[0]) if found else None


def type_into_cell(page: Page, row: int, side: float, text: str, is_new: bool = False) -> None:
    """Write over a cell: row from 1, `side` from left to right as a fraction of the table's width.

    A click on the blank row below the last one makes a new row and opens its cell at once.
    """
    grid = page.locator(".dvn-scroller").first  # lies over the canvas and takes the clicks
    box = box_of(grid)
    grid.click(position={"x": side * box["width"], "y": (row + 0.5) * ROW})
    if not is_new:
        page.keyboard.press("Enter")
    editor = page.locator("textarea.gdg-input")
    editor.fill(text)
    editor.press("Enter")


def text_input(page: Page, label: str) -> Locator:
    return page.get_by_role("textbox", name=label, exact=True)


def answer(where: Page | Locator, text: str) -> Locator:
    """The sentence under a panel, not the label in its figure that says the same."""
    return where.get_by_role("paragraph").filter(has_text=re.compile(f"^{text}$"))


def test_edit_the_table_ask_it_and_open_its_link_again(page: Page, app_url: str) -> None:
    card = open_names(page, app_url)
    type_into_cell(page, 3, 0.8, "Muriel")
    expect(answer(card, "Li → Muriel")).to_be_visible()
    tools = page.locator(".st-key-card-lookup [data-testid=stElementToolbarButton]")
    expect(tools.filter(has=page.get_by_label("Search"))).to_be_visible()
    expect(tools.filter(has=page.locator('[aria-label^="Download as CSV"]'))).to_have_count(1)
    expect(tools.filter(has=page.locator('[aria-label^="Download as CSV"]'))).to_be_hidden()  # it would save formulas
    type_into_cell(page, 7, 0.3, "Li", is_new=True)
    expect(page.get_by_text("The key Li is in the table 2 times.")).to_be_visible()
    type_into_cell(page, 7, 0.8, "Fei-Fei")
    expect(answer(card, "Li → Fei-Fei")).to_be_visible()
    page.wait_for_url(re.compile("qkv-names="))
    rows = in_address(page, "qkv-names")
    assert isinstance(rows, list)
    assert (rows[2], rows[6]) == (["Li", "Muriel"], ["Li", "Fei-Fei"])

    link = page.url
    other = page.context.new_page()  # someone else opens the link
    other.goto(link)
    expect(answer(other.locator(".st-key-section-ways"), "Li → Fei-Fei")).to_be_visible(timeout=60_000)
    other.close()

    query = page.locator('input[aria-label="Query"]')  # what was edited stays while other things change
    query.fill("Zhang")
    query.press("Enter")
    expect(answer(card, "Zhang → Aston")).to_be_visible()
    query.fill("Li")
    query.press("Enter")
    expect(answer(card, "Li → Muriel")).to_be_visible()


def test_the_way_back_undoes_an_edit_and_one_survives_a_look_at_another_chapter(page: Page, app_url: str) -> None:
    card = open_names(page, app_url)
    type_into_cell(page, 3, 0.8, "Muriel")
    expect(answer(card, "Li → Muriel")).to_be_visible()
    page.wait_for_url(re.compile("qkv-names="))
    page.go_back()
    expect(answer(card, "Li → Mu")).to_be_visible()
    assert in_address(page, "qkv-names") is None
    expect_rest(page)

    type_into_cell(page, 3, 0.8, "Muriel")
    expect(answer(card, "Li → Muriel")).to_be_visible()
    expect_rest(page)
    sidebar = page.get_by_test_id("stSidebarNav")
    sidebar.get_by_role("link", name="Attention pooling", exact=True).click()
    expect(page.get_by_role("heading", level=1, name="Attention pooling")).to_be_visible()
    expect_rest(page)
    sidebar.get_by_role("link", name="Queries, keys and values", exact=True).click()
    expect(answer(page, "Li → Muriel")).to_be_visible()


def test_weights_are_typed_dragged_and_never_lost(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/queries-keys-values?qkv-open-plane=true")
    card = page.locator(".st-key-card-plane")
    expect(card.get_by_role("cell", name="(2.160, 1.700)")).to_be_visible()

    weight = text_input(page, "weight, v1")
    weight.fill("a lot")
    expect(card.get_by_text("The weight of v1 is “a lot”, not a number")).to_be_visible()
    expect(weight).to_have_value("a lot")
    expect(weight).to_have_attribute("aria-invalid", "true")
    weight.fill("1.2")  # of 2: convex weights 0.6, 0.2, 0.15, 0.05
    expect(card.get_by_role("cell", name="(1.330, 1.850)")).to_be_visible()
    expect(weight).to_have_attribute("aria-invalid", "false")

    slider = page.get_by_role("slider", name="drag the weight, v2")
    slider.focus()
    slider.press("End")  # 2
    expect(text_input(page, "weight, v2")).to_have_value("2")
    slider.press("Home")  # -1, which a convex sum counts as 0
    expect(card.get_by_text("0.750, 0.000, 0.188")).to_be_visible()
    page.wait_for_url(re.compile("qkv-values="))
    page.get_by_role("radio", name="any", exact=True).click()
    expect(card.get_by_text("1.200, −1.000, 0.300, 0.100")).to_be_visible()

    card.get_by_role("button", name="Add a value").click()
    expect(text_input(page, "weight, v5")).to_be_focused()
    card.get_by_role("button", name="Remove v1").click()
    expect(text_input(page, "weight, v1")).to_have_value("−1")
    expect(text_input(page, "weight, v5")).to_have_count(0)
    rows = in_address(page, "qkv-values")
    assert isinstance(rows, list)

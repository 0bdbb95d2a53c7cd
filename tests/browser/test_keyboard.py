"""By keyboard alone: Tab finds everything that a mouse does, with a ring around it, and keys do what a mouse does."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from tests.browser.page_checks import expect_rest
from ui.compute.heads import head_scans
from viz_core.pretrained import load

_MOST = 120  # presses


def go_to(page: Page, wanted: Locator) -> None:
    """Press Tab until this has the focus, where everybody sees it."""
    for _ in range(_MOST):
        if wanted.count() == 1 and wanted.evaluate("node => node.getRootNode().activeElement === node"):
            assert wanted.evaluate("node => getComputedStyle(node).outlineStyle !== 'none' || node.tagName === 'INPUT'")
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{_MOST} presses of Tab do not reach {wanted}")


def test_a_sentence_is_typed_a_head_opened_and_switched_off_a_token_pinned_and_the_link_copied(
    page: Page, app_url: str
) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{app_url}/transformer")
    box = page.get_by_label("An English sentence")
    expect(box).not_to_have_value("")
    expect_rest(page)
    go_to(page, box)
    page.keyboard.press("Control+A")
    page.keyboard.type("I lost.")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("t-text=I\\+lost"))
    # The page rests while it waits for the translation, and its maps replace those that could have the focus.
    expect(page.get_by_role("heading", name=load("transformer-en-fr").translate("I lost.").text)).to_be_visible()
    expect_rest(page)
    go_to(page, page.get_by_role("tab", name="Cross"))
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(re.compile(r"head=decoder-self\.0\.0"))
    page.keyboard.press("ArrowRight")
    go_to(page, page.locator("button.head[aria-selected=true]"))
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile(r"head=cross\.1\.1"))
    expect_rest(page)
    go_to(page, page.locator("[data-part=openSwitch]"))
    page.keyboard.press("Space")
    page.wait_for_url(re.compile("t-without=cross-2\\.2"))
    expect(page.locator(".st-key-translation-without")).to_be_visible()
    expect_rest(page)
    go_to(page, page.locator("[data-part=exports] summary"))
    page.keyboard.press("Enter")
    go_to(page, page.locator("[data-export=link]"))
    page.keyboard.press("Enter")
    expect(page.locator("[data-part=exportNote]")).not_to_be_empty()
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    page.keyboard.press("Escape")
    go_to(page, page.get_by_role("application"))
    page.keyboard.press("ArrowDown")  # shows the first cell
    page.keyboard.press("Enter")
    expect(page.get_by_text("Pinned: ")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_text("Pinned: ")).to_have_count(0)
    go_to(page, page.locator(".line.queries .token").first)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Pinned: ")).to_be_visible()


def test_the_language_is_changed_and_a_star_placed_and_compared(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/relative-projection")
    expect(page.locator("html")).to_have_attribute("lang", "en")
    expect_rest(page)
    go_to(page, page.get_by_test_id("stSidebar").get_by_role("combobox"))
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("option").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("html")).not_to_have_attribute("lang", "en")
    expect_rest(page)
    go_to(page, page.locator(".st-key-exercise-hand input[type=checkbox]"))
    page.keyboard.press("Space")  # to draw on the figure
    board = page.locator("svg[role=slider]")
    expect(board).to_be_visible()
    expect_rest(page)
    go_to(page, board)
    before = board.get_attribute("aria-valuetext")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("ArrowUp")
    expect(board).not_to_have_attribute("aria-valuetext", before or "")
    go_to(page, page.locator("[data-part=reveal]"))
    page.keyboard.press("Enter")
    expect(page.locator(".sketch.revealed")).to_be_visible()


def test_points_of_a_chart_are_walked_by_height_named_and_chosen(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/heads?hs-y=previous")
    chart = page.locator(".st-key-figure-heads [data-drawn]")
    expect(chart).to_be_visible()
    expect_rest(page)
    go_to(page, chart)
    announcement, table = chart.locator("[aria-live]"), head_scans("writer-en").tables["narrow", "decoder-self"]
    ranked = [table.heads[place] for place in table.plotted("previous").argsort()]
    for layer, head in (ranked[-1], ranked[-2]):
        page.keyboard.press("ArrowDown")
        expect(announcement).to_contain_text(f"layer {layer + 1}, head {head + 1}")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(rf"head=decoder-self\.{ranked[-2][0]}\.{ranked[-2][1]}"))

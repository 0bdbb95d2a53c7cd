"""A reader's journey: change the heads, mistype them, take the nearest that fit, look into a tensor."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.page_checks import chart


def test_heads_that_do_not_fit_and_the_nearest_that_do(page: Page, app_url: str) -> None:
    page.goto(app_url)
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="Multi-head attention", exact=True).click()
    page.get_by_role("button", name="More").click()
    page.get_by_role("radio", name="Fresh weights").click()
    page.keyboard.press("Escape")
    expect(page.get_by_text("the weights of all heads (8) equal those of torch")).to_be_visible()
    heads = page.get_by_label("Heads h")
    heads.fill("6")
    heads.press("Enter")
    expect(page.get_by_text("6 heads do not divide a width of 64")).to_be_visible()
    expect(heads).to_have_value("6")
    page.get_by_role("button", name="4 heads", exact=True).click()
    expect(page.get_by_text("the weights of all heads (4) equal those of torch")).to_be_visible()
    expect(heads).to_have_value("4")
    expect(page).to_have_url(re.compile(r"mh-heads=4\b"))
    # Every tensor in heads now says so.
    page.get_by_text("Follow the shapes").click()
    flow = chart(page, "flow")
    expect(flow.get_by_text("(1, 4, 9, 16)").first).to_be_attached()

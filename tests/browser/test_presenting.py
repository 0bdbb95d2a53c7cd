"""Presenting: a link or a key fills the window with one figure after another, and Escape brings the page back."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect


def expect_to_fill(page: Page, figure: Locator) -> None:
    filled = "(node) => node.clientWidth > 0.85 * innerWidth && node.clientHeight > 0.6 * innerHeight"
    page.wait_for_function(filled, arg=figure.element_handle())


def test_a_link_opens_on_the_first_figure_keys_go_on_and_escape_ends(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/sinusoidal-encoding?present=1&se-n=40&lang=zh-TW")
    presenting = page.locator("html[data-presenting]")
    place = page.get_by_text(re.compile(r"^第 \d+ 張，共 \d+ 張$"))
    sidebar, map_ = page.get_by_test_id("stSidebar"), page.get_by_role("application").first
    expect(presenting).to_be_attached()
    expect(place).to_have_text(re.compile("^第 1 張"))
    expect(place).to_be_visible()
    expect(sidebar).to_be_hidden()
    expect(page.get_by_role("slider").filter(visible=True)).to_have_count(0)  # no control is left
    expect(page.locator("html")).to_have_css("font-size", "21px")
    for size in ({"width": 1400, "height": 900}, {"width": 1920, "height": 1080}):
        page.set_viewport_size(size)
        expect_to_fill(page, map_)
    page.keyboard.press("ArrowRight")
    expect(place).to_have_text(re.compile("^第 2 張"))
    expect(map_).to_be_hidden()
    page.keyboard.press("PageUp")
    expect(map_).to_be_visible()
    page.keyboard.press("Escape")
    expect(presenting).not_to_be_attached()
    expect(sidebar).to_be_visible()
    assert "present" not in page.url
    assert "se-n=40" in page.url
    page.locator("body").press("p")
    expect(presenting).to_be_attached()
    page.keyboard.press("p")
    expect(presenting).not_to_be_attached()

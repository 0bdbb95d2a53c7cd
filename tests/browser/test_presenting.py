"""Presenting: a link or a key fills the window with one figure after another, and Escape brings the page back."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect


def test_a_link_opens_on_the_first_figure_keys_go_on_and_escape_ends(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/sinusoidal-encoding?present=1&se-n=40")
    presenting = page.locator("html[data-presenting]")
    place = page.get_by_text(re.compile(r"^\d+ of \d+$"))
    sidebar, map_ = page.get_by_test_id("stSidebar"), page.get_by_role("application").first
    expect(presenting).to_be_attached()
    expect(place).to_have_text(re.compile("^1 of "))
    expect(place).to_be_visible()
    expect(sidebar).to_be_hidden()
    assert page.viewport_size
    wide, high = page.viewport_size["width"], page.viewport_size["height"]
    box = map_.bounding_box()
    assert box
    assert box["width"] > 0.85 * wide
    assert box["height"] > 0.6 * high
    page.keyboard.press("ArrowRight")
    expect(place).to_have_text(re.compile("^2 of "))
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

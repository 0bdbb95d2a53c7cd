"""A reader's journey: pick two tokens, run the stopwatch, stop it, and leave while it runs."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.page_checks import chart, expect_rest

STOPWATCH = "architectures?a-section=Stopwatch&a-most=4096&a-width=256"


def start(page: Page, url: str) -> None:
    page.goto(url)
    page.get_by_role("button", name="Start the stopwatch").click()
    expect(page.get_by_text(re.compile(r"^\d+ of \d+ measured$"))).to_be_visible()


def test_pick_two_tokens_and_read_the_paths(page: Page, app_url: str) -> None:
    page.goto(app_url)
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="CNN, RNN or attention", exact=True).click()
    page.get_by_text("All five layers, and their paths").click()
    expect(page.get_by_text("Path from Cats to returned")).to_be_visible()
    page.get_by_text("Cost by length").click()
    chart(page, "curves")
    words = page.get_by_role("combobox", name="To token")
    words.scroll_into_view_if_needed()
    expect_rest(page)  # a list closes when the page moves
    words.focus()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("option").first).to_be_visible()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Path from Cats to have")).to_be_visible()
    expect(page).to_have_url(re.compile(r"a-to=11\b"))
    network = chart(page, "network-convolution").locator(".nsewdrag").first
    box = network.bounding_box()
    assert box
    page.mouse.click(box["x"] + box["width"] * 3.6 / 12.2, box["y"] + box["height"] - 8)  # the fourth token
    expect(page).to_have_url(re.compile(r"a-from=4\b"))
    expect(page.get_by_text("Path from saw to have")).to_be_visible()
    row = page.get_by_role("row").filter(has_text="Convolution, contiguous (k = 3)")
    expect(row.get_by_role("cell").last).to_have_text("4")


def test_the_stopwatch_runs_to_its_end(page: Page, app_url: str) -> None:
    start(page, f"{app_url}/architectures?a-section=Stopwatch&a-most=256&a-width=64")
    expect(page.get_by_text("Finished: 25 of 25")).to_be_visible()
    expect(page.get_by_role("button", name="Start the stopwatch")).to_be_enabled()
    expect(page.get_by_role("button", name="Stop", exact=True)).to_have_count(0)


def test_the_page_stays_alive_while_it_runs_and_it_stops_at_a_click_and_stays_stopped(page: Page, app_url: str) -> None:
    start(page, f"{app_url}/{STOPWATCH}")
    slider = page.locator('input[aria-label="Kernel k"]')
    slider.focus()
    slider.press("ArrowRight")
    expect(page.get_by_text("Convolution, kernel 4")).to_be_visible()
    page.locator(".st-key-a-stopwatch-stop button").click()
    stopped = page.get_by_text(re.compile(r"Stopped after \d+ of 45: width 256, k = 3"))
    expect(stopped).to_be_visible()
    message = stopped.inner_text()
    slider.focus()
    slider.press("ArrowRight")
    expect(page.get_by_text("Convolution, kernel 5")).to_be_visible()  # the page has run again
    expect(stopped).to_have_text(message)
    expect(page.get_by_role("button", name="Start the stopwatch")).to_be_enabled()

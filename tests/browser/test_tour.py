"""The guided tour: from home through chapters, each step with its state; back; out, and the page stays."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.accessibility import found_in
from ui.chapter.tour import steps
from ui.text.words import load_words


def expect_step(page: Page, number: int) -> None:
    """The bar says the step, its chapter is open, as the step sets it, and its place is in sight."""
    step = steps()[number - 1]
    bar = page.get_by_role("region", name="The guided tour")
    expect(bar).to_contain_text(f"Step {number} of {len(steps())}")
    expect(bar).to_contain_text(load_words("tour")(f"step.{step.name}"))
    expect(page.get_by_role("heading", level=1, name=load_words(step.chapter).title)).to_be_visible()
    expect(page.locator(f".stMainBlockContainer .st-key-{step.place}[data-toured]")).to_be_in_viewport()
    expect(page).to_have_url(re.compile(rf"/{step.chapter}[?]tour={number}&"))
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")


def test_from_home_through_three_chapters_and_back_and_out(page: Page, app_url: str) -> None:
    page.goto(app_url)
    page.get_by_test_id("stMain").get_by_role("link", name="Take the tour").click()
    expect_step(page, 1)
    expect(page.get_by_label("Query", exact=True)).to_have_value("Lipten")
    following = page.get_by_role("link", name="Next", exact=True)
    for number in (2, 3, 4):
        following.click()
        expect_step(page, number)
    expect(page.locator(".st-key-sf-asks").get_by_role("radio").nth(1)).to_be_checked()
    assert found_in(page, ".tour-bar") == []
    page.get_by_role("link", name="Back", exact=True).click()
    expect_step(page, 3)
    expect(page.locator(".st-key-ap-query")).to_contain_text("1.5")
    page.go_back()
    expect_step(page, 4)
    page.locator("body").press("Escape")
    expect(page.locator(".tour-bar")).to_have_count(0)
    expect(page).to_have_url(re.compile(r"/scoring-functions[?](?!tour).*sf-asks=2"))
    page.go_back()
    expect_step(page, 4)
    page.get_by_role("button", name="Leave").click()
    expect(page.locator(".tour-bar")).to_have_count(0)
    expect(page.locator(".st-key-sf-asks").get_by_role("radio").nth(1)).to_be_checked()


def test_on_a_phone_a_step_about_the_map_shows_the_map(page: Page, app_url: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    step = next(step for step in steps() if step.name == "head")
    page.goto(f"{app_url}/{step.link}")
    expect_step(page, step.number)
    map_ = page.locator(".st-key-maps").get_by_role("application").first
    expect(map_).to_be_in_viewport(ratio=0.9)
    bar, bottom = page.get_by_role("region", name="The guided tour").bounding_box(), map_.bounding_box()
    assert bar is not None
    assert bottom is not None
    assert bottom["y"] + bottom["height"] <= bar["y"] + 1, "the bar hides none of it"

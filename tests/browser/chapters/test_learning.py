"""A reader's journey: train, stop, move the time line back, read a measure of a head there."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

OWN = "learning?l-source=Train+one+now&l-steps=1600&l-width=32&l-longest=5"


def test_train_stop_and_look_back(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/{OWN}")
    page.get_by_role("button", name="Train from the start").click()
    expect(page.get_by_text(re.compile(r"seed 0, after [1-9]\d* updates"))).to_be_visible()  # a snapshot every 40
    page.locator(".st-key-l-train-stop button").click()
    expect(page.get_by_text(re.compile(r"Stopped after \d+ of 1600 updates"))).to_be_visible()
    expect(page.locator("[data-testid=stApp][data-test-script-state=notRunning]")).to_be_attached()
    label, line = page.locator("[data-part=tabs]"), page.locator(".st-key-l-step")
    at_last = label.text_content()
    line.get_by_role("slider").press("Home")
    expect(label).to_have_text("After 0 updates")
    expect(page.get_by_text("seed 0, after 0 updates")).to_be_visible()
    expect(page).to_have_url(re.compile(r"l-step=0\b"))
    expect(page.locator("[data-part=printName]")).to_have_text(re.compile(r"Layer \d, head \d"))
    expect(page.locator("[data-part=prints]")).to_contain_text("entropy")
    expect(page.get_by_role("button", name="Continue")).to_be_visible()
    line.get_by_role("slider").press("End")
    expect(label).to_have_text(at_last or "")


def test_play_a_head_by_keyboard_and_by_click(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/learning?l-open-play=true")
    section = page.locator(".st-key-section-play")
    yours = section.locator("tbody tr").first
    expect(yours).to_contain_text("0 of 5")
    key = section.locator(".st-key-l-play-2-key").get_by_role("radio", name=re.compile(r" 2$"))
    key.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"l-play-2=61\b"))
    expect(yours).to_contain_text("1 of 5")
    query = section.locator(".st-key-l-play-2-query").get_by_role("radio", name=re.compile(r" 8$"))
    expect(query).to_be_checked()  # the next query, whose key is chosen next
    plot = section.locator(".js-plotly-plot .nsewdrag").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    plot.click(position={"x": box["width"] * 2.5 / 13, "y": box["height"] * 7.5 / 11})  # 13 columns, 2 of them for text
    expect(page).to_have_url(re.compile(r"l-play-2=6172\b"))
    expect(yours).to_contain_text("2 of 5")
    section.get_by_role("button", name="Undo").press("Enter")
    expect(page).to_have_url(re.compile(r"l-play-2=61\b"))
    page.reload()
    expect(yours).to_contain_text("1 of 5")

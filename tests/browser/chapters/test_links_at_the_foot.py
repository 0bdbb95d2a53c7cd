"""From chapter to chapter by the links at the foot of each."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from ui.chapter.contents import all_chapters
from ui.text.words import load_words

EXISTING = all_chapters()[1:]


def test_a_newcomer_walks_from_home_to_the_model_lab_by_the_links_at_the_foot(page: Page, app_url: str) -> None:
    """A sentence typed on the way comes along, and home knows where one has been."""
    app, box = page.get_by_test_id("stApp"), page.get_by_label("An English sentence")
    page.goto(app_url)
    for name in EXISTING:
        expect(app).to_have_attribute("data-test-script-state", "notRunning")
        page.locator(".st-key-next").get_by_role("link").click()
        expect(page.get_by_role("heading", level=1, name=load_words(name).title, exact=True)).to_be_visible()
        if name == "bahdanau":
            box.fill("I lost.")
            box.press("Enter")
            page.wait_for_url("**/bahdanau?b-text=I+lost*")
        if name == "transformer":
            expect(box).to_have_value("I lost.")
            expect(page).to_have_url(re.compile("t-text=I(%20|[+])lost"))
        if name == "model-lab":
            expect(page.locator(".st-key-ml-start textarea")).to_have_value("I lost.")
    expect(app).to_have_attribute("data-test-script-state", "notRunning")
    page.get_by_test_id("stSidebarNavLink").first.click()  # the lab is a workbench, and the last chapter
    expect(page.get_by_text(f"You have visited {len(EXISTING)} of {len(EXISTING)} chapters")).to_be_visible()
    expect(page.locator("[data-last]")).to_have_count(1)

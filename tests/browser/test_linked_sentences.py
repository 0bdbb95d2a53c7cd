"""The sentence on the home page: pointed at, by keys, by touch, offline, and another one."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from ui.blocks.linked_sentences import recorded

PRESSED = ".word[aria-pressed=true]"


def word(page: Page, line: str, text: str) -> Locator:
    return page.locator(f"[data-part={line}] .word").filter(has_text=re.compile(rf"^{text}(\d+%)?$"))


def test_words_light_up_at_once_and_offline(page: Page, app_url: str) -> None:
    page.goto(app_url)
    stored = recorded()
    noir, black = stored["lines"][1].index("noir"), stored["lines"][0].index("black")
    expect(page.locator(PRESSED)).to_have_text("noir")  # the order of these two words changes: it opens on that
    expect(word(page, "first", "black")).to_have_text(f"black{stored['across']['weights'][noir][black]:.0%}")
    assert page.locator(".sentences path").count() >= 1
    page.context.set_offline(True)
    word(page, "second", "chat").hover()
    expect(page.locator(PRESSED)).to_have_text("chat")
    expect(page.locator("[data-part=say]")).to_contain_text("“cat”")
    word(page, "first", "bed").click()
    expect(word(page, "second", "lit")).to_have_attribute("data-lit", "")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(PRESSED)).to_have_text("my")
    page.keyboard.press("ArrowDown")
    expect(page.locator("[data-part=second] " + PRESSED)).to_have_count(1)
    page.context.set_offline(False)


def test_another_sentence_is_translated_on_a_phone(page: Page, app_url: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(app_url)
    page.get_by_label("Your sentence").fill("I'm home.")
    page.get_by_label("Your sentence").press("Enter")
    word(page, "second", "suis").click()
    expect(page.locator(PRESSED)).to_have_text("suis")
    assert "h-text=I%27m+home." in page.url
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

"""The language: kept by the browser, carried by a link; a second one under each sentence; terms in the others."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.page_checks import expect_rest
from ui.text.bilingual import split_sentences
from ui.text.words import load_words

CHAPTER = "queries-keys-values"
POINT_AT = """(term) => {
    const texts = document.createTreeWalker(document.querySelector(".stMain"), NodeFilter.SHOW_TEXT);
    for (let node; (node = texts.nextNode()); ) {
        const start = node.data.indexOf(term);
        if (start < 0 || !node.parentElement.closest(".stMarkdown p")) continue;
        const range = document.createRange();
        range.setStart(node, start);
        range.setEnd(node, start + term.length);
        const { left, top, width, height } = range.getBoundingClientRect();
        return [left + width / 2, top + height / 2];
    }
}"""


def expect_title(page: Page, language: str) -> None:
    expect(page.get_by_role("heading", level=1, name=load_words(CHAPTER, language).title, exact=True)).to_be_visible()
    expect_rest(page)


def choose(page: Page, label: str, option: str) -> None:
    box = page.get_by_role("combobox", name=label, exact=True)
    box.click()
    page.get_by_role("option", name=option, exact=True).click()


def test_a_chosen_language_is_there_at_the_next_visit_and_a_link_does_not_change_it(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/{CHAPTER}")
    expect_title(page, "en")
    choose(page, "Language", "Português (Brasil)")
    expect_title(page, "pt-BR")
    page.wait_for_function("document.cookie.includes('atlas-language=pt-BR')")

    page.goto("about:blank")
    page.goto(f"{app_url}/{CHAPTER}")
    expect_title(page, "pt-BR")
    page.wait_for_url("**lang=pt-BR*")  # a copied link shows the same to somebody else

    page.goto("about:blank")
    page.goto(f"{app_url}/{CHAPTER}?lang=zh-TW")
    expect_title(page, "zh-TW")
    page.goto("about:blank")
    page.goto(f"{app_url}/{CHAPTER}")
    expect_title(page, "pt-BR")


def test_a_second_language_is_under_each_sentence(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/{CHAPTER}")
    expect_title(page, "en")
    page.get_by_test_id("stPopover").get_by_role("button").first.click()
    choose(page, "Second language", "繁體中文")
    page.wait_for_url("**second=zh-TW*")
    question = page.locator(".st-key-question")
    english, chinese = (split_sentences(load_words(CHAPTER, language)("question")) for language in ("en", "zh-TW"))
    expect(question.locator("blockquote")).to_have_count(len(chinese))
    expect(question.locator("p")).to_have_text([text for pair in zip(english, chinese, strict=True) for text in pair])


def test_a_term_that_is_pointed_at_is_named_in_the_other_languages(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/{CHAPTER}")
    expect_title(page, "en")
    tooltip = page.get_by_role("tooltip")
    page.mouse.move(*page.evaluate(POINT_AT, "query"))
    expect(tooltip).to_have_text("consulta · 查詢")
    page.keyboard.press("Escape")
    expect(tooltip).to_have_count(0)
    page.goto(f"{app_url}/{CHAPTER}?lang=zh-TW")
    expect_title(page, "zh-TW")
    page.mouse.click(*page.evaluate(POINT_AT, "鍵"))  # touched
    expect(tooltip.first).to_contain_text("key · chave")


def test_the_terms_of_a_chapter_are_listed(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/{CHAPTER}?qkv-open-glossary=true")
    table = page.locator(".st-key-section-glossary table")
    expect(table.get_by_role("cell", name="consulta", exact=True)).to_be_visible()


def test_numbers_are_those_of_the_page_and_not_of_the_browser(page: Page, app_url: str) -> None:
    """Sliders and formulas: an English browser shows a Portuguese page with decimal commas."""
    page.goto(f"{app_url}/{CHAPTER}?lang=pt-BR")
    expect_title(page, "pt-BR")
    expect(page.get_by_test_id("stSlider").first).to_contain_text("0,2")
    page.goto(f"{app_url}/relative-projection?lang=pt-BR&rp-open-proof=true")
    expect_rest(page)
    formulas = page.locator(".katex-html")
    expect(formulas.filter(has_text="0,").first).to_be_visible()
    texts = formulas.all_inner_texts()
    assert not [text for text in texts if re.search(r"\d\.\d", text)]

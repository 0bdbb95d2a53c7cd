"""The language: kept by the browser, carried by a link; terms in the others; numbers as it writes them."""

from __future__ import annotations

import re
from contextlib import suppress

from playwright.sync_api import Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from tests.browser.page_checks import expect_rest, expect_streamlit_to_speak
from ui.text.words import load_words

CHAPTER = "queries-keys-values"
TEXTS = "(nodes) => nodes.map((node) => node.textContent)"
POINT_AT = """(term) => {
    const texts = document.createTreeWalker(document.querySelector(".stMain"), NodeFilter.SHOW_TEXT);
    for (let node; (node = texts.nextNode()); ) {
        const start = node.data.indexOf(term);
        if (start < 0 || !node.parentElement.closest(".stMarkdown p")) continue;
        if (node.parentElement.closest("a, button, label, summary")) continue; // these do something else
        node.parentElement.scrollIntoView({ block: "center", behavior: "instant" });
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


def expect_language(page: Page, language: str) -> None:
    expect(page.locator("html")).to_have_attribute("lang", language)
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


def test_a_term_that_is_pointed_at_is_named_in_the_other_languages(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/{CHAPTER}")
    expect_title(page, "en")
    expect_rest(page)  # what is drawn later moves the term away
    tooltip = page.get_by_role("tooltip")
    expect_tooltip(page, "query", "consulta · 查詢")
    page.keyboard.press("Escape")
    expect(tooltip).to_have_count(0)
    page.goto(f"{app_url}/{CHAPTER}?lang=zh-TW")
    expect_title(page, "zh-TW")
    expect_rest(page)
    page.evaluate(POINT_AT, "鍵")  # scrolls, which would hide what is shown
    page.wait_for_timeout(300)
    page.mouse.click(*page.evaluate(POINT_AT, "鍵"))  # touched
    expect(tooltip.first).to_contain_text("key · chave")


def expect_tooltip(page: Page, term: str, text: str) -> None:
    """Point at a term until the page listens, which it may not yet while its scripts come."""
    tooltip = page.get_by_role("tooltip")
    for _ in range(60):
        page.mouse.move(*page.evaluate(POINT_AT, term))
        with suppress(PlaywrightTimeout):
            tooltip.wait_for(timeout=1_000)
            break
        page.mouse.move(1, 1)
    expect(tooltip).to_have_text(text)


def test_readout_badge_tooltip_chart_and_export_have_numbers_of_the_language(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/{CHAPTER}?lang=pt-BR&open-all=true")
    expect_title(page, "pt-BR")
    plane = page.locator(".st-key-section-plane")
    plane.scroll_into_view_if_needed()
    expect(plane.get_by_role("cell", name="(2,160; 1,700)")).to_be_visible()
    expect_rest(page)
    badges = page.locator("[class*='claim'] code")
    expect(badges.filter(has_text="0,0012")).to_be_attached()
    page.locator("details").filter(has=badges.filter(has_text="0,0012")).locator("summary").click()
    expect(badges.filter(has_text="0,0012")).to_be_visible()
    chart = page.get_by_role("figure").first.locator("text")
    expect(chart.filter(has_text="0,898")).to_be_visible()
    page.get_by_role("button", name="Ajuda", exact=True).nth(2).hover()
    tooltip = page.get_by_test_id("stTooltipContent")
    expect(tooltip).to_contain_text("desvio de 0,0012")
    shown = [*badges.all_text_contents(), *plane.get_by_role("cell").all_inner_texts(), *tooltip.all_inner_texts()]
    shown += [text or "" for text in page.get_by_role("figure").locator("text").evaluate_all(TEXTS)]
    assert len(shown) > 20
    assert not [text for text in shown if re.search(r"\d\.\d{1,2}(?!\d)", text)]
    with page.expect_download() as download:
        page.get_by_role("button", name="Valores e pesos (CSV)").click()
    exported = download.value.path().read_text(encoding="utf-8-sig")
    assert exported.splitlines()[:2] == ["x;y;peso", "0,5;2,0;0,2"]


def test_streamlits_own_labels_are_in_the_language_of_the_page(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/vision-transformer?vt-source=upload&lang=zh-TW")
    expect_language(page, "zh-TW")
    uploader = page.get_by_test_id("stFileUploader")
    expect(uploader.get_by_role("button", name="上傳", exact=True)).to_be_visible()
    expect(uploader).to_contain_text("每個檔案上限")
    expect_streamlit_to_speak(page, "zh-TW")
    choose(page, "語言", "Português (Brasil)")
    expect_language(page, "pt-BR")
    expect(uploader.get_by_role("button", name="Enviar", exact=True)).to_be_visible()
    expect_streamlit_to_speak(page, "pt-BR")
    choose(page, "Idioma", "English")
    expect_language(page, "en")
    expect(uploader.get_by_role("button", name="Upload", exact=True)).to_be_visible()

"""Every chapter in every language, wide and on a phone, with every tab and sheet open: `make languages`.

It takes longer than the rest of the suite, which looks at each chapter in one language, in turn, as it opens it anyway
(chapters/test_every_chapter.py).
"""

import pytest
from playwright.sync_api import Page, expect

from tests.browser import page_checks
from tests.browser.accessibility import expect_no_more_than
from ui.chapter.contents import all_pages
from ui.text.words import ENGLISH, languages, load_words

_SIZES = ({"width": 390, "height": 844}, {"width": 1400, "height": 900})


@pytest.mark.parametrize("language", languages())
@pytest.mark.parametrize("chapter", all_pages())
def test_all_of_it_fits_and_everybody_can_read_and_use_it(
    page: Page, app_url: str, found_in_empty: list[str], chapter: str, language: str
) -> None:
    page_checks.watch(page)
    page.goto(f"{app_url}/{'' if chapter == 'home' else chapter}?lang={language}")
    expect(page.get_by_role("heading", level=1, name=load_words(chapter, language).title)).to_be_visible()
    expect(page.locator("html")).to_have_attribute("lang", language)
    page_checks.expect_rest(page)
    tabs = page.get_by_test_id("stMain").get_by_test_id("stTab")
    for i in range(max(1, tabs.count())):
        if tabs.count():
            tabs.nth(i).click()
            expect(tabs.nth(i)).to_have_attribute("aria-selected", "true")
        page_checks.open_sheets(page, code=language == ENGLISH and i + 1 >= tabs.count())  # the same in each, and long
        expect(page.locator(".chart:not([data-drawn]):visible")).to_have_count(0)
        for size in _SIZES:
            page.set_viewport_size(size)
            page_checks.expect_texts_to_fit(page)
        expect_no_more_than(found_in_empty, page)
    page_checks.expect_streamlit_to_speak(page, language)
    page_checks.expect_keys_to_reach_all(page)

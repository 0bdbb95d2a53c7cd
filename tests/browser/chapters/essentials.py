"""The essentials of each chapter fit: at most two screens and about 350 words, and the rest waits below."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.page_checks import expect_rest

DESK = {"width": 1400, "height": 900}
_SCREENS = 2
_WORDS = 420  # "about 350", with the labels of controls and badges

_COUNT = """() => {
  const deeper = document.querySelector('.st-key-deeper');
  const texts = [...document.querySelectorAll(
    '.stMainBlockContainer :is([data-testid=stMarkdownContainer], [data-testid=stCaptionContainer])')];
  const above = texts.filter((each) =>
    !deeper.contains(each) && deeper.compareDocumentPosition(each) & Node.DOCUMENT_POSITION_PRECEDING
    && !each.querySelector('[data-testid=stMarkdownContainer]'));
  const words = above.flatMap((each) => (each.innerText || '').split(/\\s+/)).filter((word) => /[a-z]/i.test(word));
  const main = document.querySelector('[data-testid=stMain]');
  return { words: words.length, end: deeper.getBoundingClientRect().top + main.scrollTop };
}"""

_FORMULA_STICKS_OUT = """() => {
  const { top, bottom } = document.querySelector('.st-key-definition').lastElementChild.getBoundingClientRect();
  const signs = [...document.querySelectorAll('.st-key-definition > :last-child .katex-html span')].filter((each) =>
    !each.children.length && each.textContent.trim() && !each.matches('.vlist-s'));
  return signs.filter((each) => each.getBoundingClientRect().bottom > bottom + 1
    || each.getBoundingClientRect().top < top - 1).map((each) => each.textContent);
}"""


# Waits until where the optional sections begin has been the same for half a second.
_STILL = """async () => {
  const begin = () => document.querySelector(".st-key-deeper").getBoundingClientRect().top;
  for (let [last, same] = [begin(), 0]; same < 10; last = begin()) {
    await new Promise((done) => setTimeout(done, 50));
    same = begin() === last ? same + 1 : 0;
  }
}"""


def expect_still(page: Page) -> None:
    """The essentials have been as high as they are for half a second."""
    page.evaluate(_STILL)


def expect_essentials_to_fit(page: Page) -> None:
    """The essentials of the chapter that is open in a window of the size `DESK`."""
    expect(page.locator(".st-key-deeper")).to_be_visible()
    for part in ("definition", "takeaways", "next"):
        expect(page.locator(f".st-key-{part}")).to_be_visible()
    assert not page.locator(".st-key-deeper details[open]").count(), "sections cost nothing until they are opened"
    expect_rest(page)
    expect_still(page)  # figures that draw themselves take their height
    found = page.evaluate(_COUNT)
    assert found["end"] <= _SCREENS * DESK["height"], found
    assert found["words"] <= _WORDS, found
    assert page.evaluate(_FORMULA_STICKS_OUT) == []

"""The essentials of each chapter fit: at most two screens and about 350 words, and the rest waits below."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from tests.browser.page_checks import expect_rest
from ui.chapter.contents import all_chapters
from ui.text.words import load_words

DESK = {"width": 1400, "height": 900}
_SCREENS = 2
_WORDS = 420  # "about 350", with the labels of controls and badges

_BROKEN = {
    "queries-keys-values": "undivided",
    "attention-pooling": "signed",
    "scoring-functions": "no-softmax",
    "bahdanau": "no-tanh",
    "multi-head": "undivided",
    "architectures": "shallow",
    "linear-attention": "no-removal",
    "sinusoidal-encoding": "single",
    "relative-projection": "mirrored",
    "position-embeddings": "no-order",
    "transformer": "no-mask",
    "vision-transformer": "shuffled",
    "learning": "untrained",
    "model-lab": "no-mask",
}
"""By chapter, a wrong formula that its main figure offers."""

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


@pytest.mark.parametrize("chapter", [name for name in all_chapters() if load_words(name, "en").has("definition")])
def test_essentials_fit_their_bounds(page: Page, app_url: str, chapter: str) -> None:
    page.set_viewport_size(DESK)
    page.goto(f"{app_url}/{chapter}")
    deeper = page.locator(".st-key-deeper")
    expect(deeper).to_be_visible(timeout=30_000)
    for part in ("definition", "takeaways", "next"):
        expect(page.locator(f".st-key-{part}")).to_be_visible()
    assert not page.locator(".st-key-deeper details[open]").count(), "sections cost nothing until they are opened"
    expect_rest(page)
    page.wait_for_timeout(1_000)  # figures that draw themselves take their height
    found = page.evaluate(_COUNT)
    assert found["end"] <= _SCREENS * DESK["height"], found
    assert found["words"] <= _WORDS, found
    assert page.evaluate(_FORMULA_STICKS_OUT) == []


@pytest.mark.parametrize(("chapter", "setting"), _BROKEN.items())
def test_what_a_wrong_formula_breaks_is_in_view_beside_the_intact_figure(
    page: Page, app_url: str, chapter: str, setting: str
) -> None:
    page.set_viewport_size(DESK)
    key = "".join(part[0] for part in chapter.split("-")) + "-break"
    key += "-order" if chapter == "position-embeddings" else ""
    page.goto(f"{app_url}/{chapter}?{urlencode({key: load_words(chapter, 'en')(f'option.{setting}')})}")
    intact, broken = page.locator(".st-key-intact").first, page.locator(".st-key-broken").first
    failing = broken.locator("[class*=-fails]")
    expect(failing.first).to_be_visible(timeout=60_000)
    expect_rest(page)
    expect(intact.locator("[class*=-fails]")).to_have_count(0)
    expect(intact.locator("[class*=st-key-claim-]").first).to_be_visible()
    for each in failing.all():
        bottom = each.evaluate("badge => badge.getBoundingClientRect().bottom")
        assert bottom <= DESK["height"], "the failing badge is below the fold"

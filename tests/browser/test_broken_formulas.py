"""What a wrong formula breaks is seen at once, beside the intact figure."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from tests.browser.page_checks import expect_rest
from ui.text.words import load_words

DESK = {"width": 1400, "height": 900}

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
    "heads": "no-chance",
}
"""By chapter, a wrong formula that its main figure offers."""


@pytest.mark.parametrize(("chapter", "setting"), _BROKEN.items())
def test_what_a_wrong_formula_breaks_is_in_view_beside_the_intact_figure(
    page: Page, app_url: str, chapter: str, setting: str
) -> None:
    page.set_viewport_size(DESK)
    key = load_words(chapter, "en").prefix + "-break"
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

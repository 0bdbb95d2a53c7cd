"""Stepping the attention decoder in a real browser: by slider, by button, by link."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from viz_core.lessons.bahdanau.decoder_steps import decoder_steps
from viz_core.pretrained import Translation, Translator, load


@pytest.fixture(scope="module")
def translator() -> Translator:
    return load("bahdanau-en-fr")


@pytest.fixture(scope="module")
def result(translator: Translator) -> Translation:
    return translator.translate("Where did you buy this book?")


def test_a_word_is_clicked_then_word_by_word(
    page: Page, app_url: str, translator: Translator, result: Translation
) -> None:
    steps = decoder_steps(translator, result)
    page.goto(f"{app_url}/bahdanau?b-text=Where+did+you+buy+this+book%3F")
    page.locator(".st-key-b-step").get_by_role("radio").nth(3).click(force=True)
    word = result.source_tokens[int(steps.weights[3].argmax())]
    expect(page.get_by_text(f"At step 4 {word} has the largest weight, {steps.weights[3].max():.2f}")).to_be_visible()
    page.wait_for_url("**b-step=4*")

    page.get_by_role("button", name="Next word").click()
    expect(page.get_by_text("At step 5 ")).to_be_visible()
    page.wait_for_url("**b-step=5*")

"""The reader's static page gives what Python gives: tokens, logits at every place, and maps."""

from __future__ import annotations

import pytest
import torch
from playwright.sync_api import Page, expect

from benchmarks.static_site import READ, read_differences, wait_until_ready
from tests.browser.static_pages import check_every_language, check_first_visit
from tests.browser.test_static_writer import HARD_TEXTS
from viz_core.hub import HubModel, load_hub
from viz_core.hub.runs.token_text import token_words
from viz_core.pretrained.samples import held_out
from viz_core.trace import intervene, off

TEXT = "The cat is sleeping."
MASK = 3


@pytest.fixture(scope="session")
def reader() -> HubModel:
    return load_hub("reader-en", device="cpu", offline=True)


def check_equal(page: Page, reader: HubModel, texts: list[str], masked: list[int], heads: list[str]) -> None:
    for found, text in zip(page.evaluate(READ, [texts, masked, heads]), texts, strict=True):
        run = reader.run(text)
        ids, words = run.inputs["input_ids"][0].tolist(), list(token_words(run.tokens))
        assert found["words"] == words
        for own, other, word, token in zip(found["ids"], ids, words, run.tokens, strict=True):
            hidden = word in masked and any(sign.isalnum() for sign in token.text) and not token.special
            assert own == (MASK if hidden else other)
        logits, maps = read_differences(found, reader)
        assert logits < 1e-4
        assert maps < 1e-4


def test_logits_and_maps_are_those_of_python(alone: Page, site: str, reader: HubModel) -> None:
    alone.goto(f"{site}en/reader.html")
    wait_until_ready(alone)
    texts = [sample.english for sample in held_out()[:10]]
    check_equal(alone, reader, [*texts, *HARD_TEXTS], [], [])
    check_equal(alone, reader, [*texts, *HARD_TEXTS], [1, 3], [])
    with intervene({"encoder.1.self": off(3), "encoder.2.self": off(0)}):
        check_equal(alone, reader, texts[:3], [2], ["encoder-self.1.3", "encoder-self.2.0"])


@torch.inference_mode()
def prediction(reader: HubModel, text: str, place: int) -> str:
    """The most likely token in place of one of the text's."""
    ids = reader.run(text).inputs["input_ids"].clone()
    ids[0, place] = MASK
    return reader.read([int(reader.network(input_ids=ids).logits[0, place].argmax())])[0].text.strip()


def test_a_visitor_masks_a_word_switches_a_head_off_and_goes_offline(
    newcomer: Page, site: str, sent: list[int], reader: HubModel
) -> None:
    newcomer.goto(f"{site}en/")
    newcomer.get_by_role("link", name="Predict a masked word").click()
    wait_until_ready(newcomer)
    check_first_visit(newcomer, sent)
    result = newcomer.locator("[data-part=result]")
    expect(result.get_by_role("button", pressed=True)).to_have_count(1)
    newcomer.get_by_role("button", name="I want to help you.").click()
    expect(newcomer.locator("html")).to_have_attribute("data-masked", "2")
    newcomer.get_by_label("Your text").fill(TEXT)
    expect(newcomer.locator("html")).to_have_attribute("data-shown", TEXT)
    result.get_by_role("button", pressed=True).press("Enter")
    expect(newcomer.locator("html")).to_have_attribute("data-masked", "")
    expect(result).to_have_text(TEXT)
    result.get_by_role("button", name="sleeping").click()
    expect(result).to_have_text(f"The cat is {prediction(reader, TEXT, 4)}.")
    expect(newcomer).to_have_url(f"{site}en/reader.html#text=The+cat+is+sleeping.&mask=4")
    expect(newcomer.locator(".bars b")).to_have_count(5)
    expect(newcomer.locator(".claims [data-holds=true]")).to_have_count(1)
    newcomer.get_by_role("switch", name="Switch off Layer 3, head 1").first.click()
    expect(newcomer.locator("html")).to_have_attribute("data-off", "encoder-self.2.0")
    expect(newcomer.locator("p[data-part=whole]")).to_have_text(f"The cat is {prediction(reader, TEXT, 4)}.")
    with intervene({"encoder.2.self": off(0)}):
        expect(result).to_have_text(f"The cat is {prediction(reader, TEXT, 4)}.")

    newcomer.context.set_offline(True)
    newcomer.goto(f"{site}pt-BR/view-reader.html#text=The+cat+is+sleeping.&mask=2&head=encoder-self.1.2")
    wait_until_ready(newcomer)
    expect(result).to_have_text(f"The {prediction(reader, TEXT, 2)} is sleeping.")
    expect(newcomer.get_by_role("heading", level=1)).to_be_hidden()


def test_the_page_fits_a_phone_and_everyone_can_use_it(alone: Page, site: str) -> None:
    check_every_language(alone, site, "reader")

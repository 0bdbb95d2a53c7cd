"""The writer's static page gives what Python gives, greedy and sampled with the same seed."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from benchmarks.static_site import WRITTEN, wait_until_ready, written_difference
from tests.browser.static_pages import check_every_language, check_first_visit
from viz_core.hub import HubModel, HubRun, Sampling, load_hub
from viz_core.hub.runs.token_text import token_words
from viz_core.pretrained.samples import held_out
from viz_core.trace import intervene, off

HARD_TEXTS = (
    "Don't you know it's 7 o'clock?  I'll\tgo",
    "  I\u00a0said:\u2009“No—never!” \r\n",
    "Zoë ate 12½ crêpes in Ångström, 漢字 and 🎉👩‍👧.",
    "</s>end <mask>ed|\\ <pad> 2026",
    "\ufeffﬁne \u200bzero \u0085 mark\u3000.",
)


@pytest.fixture(scope="session")
def writer() -> HubModel:
    return load_hub("writer-en", device="cpu", offline=True)


def starts(count: int) -> list[str]:
    """The first three words of held-out sentences."""
    return [" ".join(sample.english.split()[:3]) for sample in held_out()[:count]]


def check_equal(found: dict[str, Any], run: HubRun) -> None:
    assert found["ids"] == run.inputs["input_ids"][0].tolist()
    assert found["numPrompt"] == run.num_prompt_tokens
    assert found["text"] == run.text
    assert found["tokens"] == [token.label for token in run.tokens]
    assert found["words"] == list(token_words(run.tokens))
    assert found["cacheError"] < 1e-4
    assert written_difference(found, run) < 1e-4


def test_tokens_and_maps_are_those_of_python(alone: Page, site: str, writer: HubModel) -> None:
    alone.goto(f"{site}en/writer.html")
    wait_until_ready(alone)
    texts = starts(10)
    for found, text in zip(alone.evaluate(WRITTEN, [texts, {"newTokens": 12}]), texts, strict=True):
        check_equal(found, writer.run(text, max_new_tokens=12))
    found = alone.evaluate(WRITTEN, [list(HARD_TEXTS), {"newTokens": 0}])
    for one, text in zip(found, HARD_TEXTS, strict=True):
        check_equal(one, writer.run(text, max_new_tokens=0))
    for temperature, top_k, seed in ((0.7, 0, 0), (1.5, 20, 9999)):
        sampling = {"temperature": temperature, "topK": top_k, "seed": seed}
        found = alone.evaluate(WRITTEN, [texts[:4], {"newTokens": 16, "sampling": sampling}])
        for one, text in zip(found, texts, strict=False):
            check_equal(one, writer.run(text, max_new_tokens=16, sampling=Sampling(temperature, top_k, 1.0, seed)))
    found = alone.evaluate(WRITTEN, [texts[:3], {"newTokens": 12, "off": ["decoder-self.1.3", "decoder-self.2.0"]}])
    with intervene({"decoder.1.self": off(3), "decoder.2.self": off(0)}):
        for one, text in zip(found, texts, strict=False):
            check_equal(one, writer.run(text, max_new_tokens=12))


def test_a_reader_writes_by_keys_switches_a_head_off_and_goes_offline(
    newcomer: Page, site: str, sent: list[int], writer: HubModel
) -> None:
    newcomer.goto(f"{site}en/")
    newcomer.get_by_role("link", name="Write the next word").click()
    wait_until_ready(newcomer)
    check_first_visit(newcomer, sent)
    newcomer.get_by_label("Your text").fill("I am going")
    newcomer.get_by_label("New tokens, at most").focus()
    newcomer.keyboard.press("ArrowUp")
    expect(newcomer).to_have_url(f"{site}en/writer.html#text=I+am+going&new=13")
    expect(newcomer.locator("html")).to_have_attribute("data-shown", "I am going")
    result = newcomer.locator("[data-part=result]")
    expect(result).to_have_text(writer.run("I am going", max_new_tokens=13).text)
    expect(newcomer.locator(".claims [data-holds=true]")).to_have_count(2)
    newcomer.get_by_role("switch", name="Switch off Layer 3, head 1").first.click()
    expect(newcomer.locator("html")).to_have_attribute("data-off", "decoder-self.2.0")
    with intervene({"decoder.2.self": off(0)}):
        expect(result).to_have_text(writer.run("I am going", max_new_tokens=13).text)
    newcomer.get_by_label("Your text").fill("a " * 200)
    expect(newcomer.get_by_role("alert")).to_contain_text("the model takes at most 128")

    newcomer.context.set_offline(True)
    newcomer.goto(f"{site}pt-BR/view-writer.html#text=Tom+is&temperature=0.7&seed=3&head=decoder-self.1.2")
    wait_until_ready(newcomer)
    expect(result).to_have_text(writer.run("Tom is", max_new_tokens=12, sampling=Sampling(0.7, seed=3)).text)
    expect(newcomer.get_by_role("heading", level=1)).to_be_hidden()
    link = newcomer.get_by_role("link", name="Abrir a página inteira")
    address = "pt-BR/writer.html#text=Tom+is&temperature=0.7&seed=3&head=decoder-self.1.2"
    assert link.get_attribute("href") == f"{site}{address}"


def test_the_page_fits_a_phone_and_everyone_can_use_it(alone: Page, site: str) -> None:
    check_every_language(alone, site, "writer")

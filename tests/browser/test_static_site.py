"""The site without a server: served from a sub-path with every other address blocked, it gives what Python gives."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from benchmarks.static_site import (
    APP,
    IN_BROWSER,
    SUB_PATH,
    WRITTEN,
    map_difference,
    wait_until_ready,
    written_difference,
)
from tests.browser.accessibility import check_everyone_can_use_it, check_first_visit, check_it_fits, keep_offline
from viz_core.hub import HubModel, HubRun, Sampling, load_hub
from viz_core.hub.runs.token_text import token_words
from viz_core.pretrained import Translator, load
from viz_core.pretrained.samples import held_out
from viz_core.trace import intervene, off

HARD_TEXTS = (
    "Don't you know it's 7 o'clock?",
    "  I\u00a0said:\u2009“No—never!” ",
    "Zoë ate 12½ crêpes in Ångström, 漢字 and 🎉.",
    "l'amour, qu'il dit; <eos> is text",
    "İstanbul ﬁne \u200bzero ▁mark",
    "Qu'il Don'T I'Ll D'ACCORD",
)


@pytest.fixture(scope="session")
def shipped() -> Translator:
    return load("transformer-en-fr", device="cpu")


def check_equal(found: dict[str, Any], expected: Any) -> None:
    assert found["source"] == list(expected.source_ids)
    assert found["target"] == list(expected.target_ids)
    assert found["text"] == expected.text
    for side in ("source", "target", "decoder"):
        assert found[f"{side}Words"] == list(getattr(expected, f"{side}_words"))
        assert found[f"{side}Tokens"] == list(getattr(expected, f"{side}_tokens"))
    assert found["logProbability"] == pytest.approx(expected.log_probability, abs=1e-3)
    assert found["cacheError"] < 1e-4
    assert map_difference(found, expected) < 1e-4


def test_tokens_maps_and_measures_are_those_of_python(alone: Page, site: str, shipped: Translator) -> None:
    alone.goto(f"{site}en/transformer.html")
    wait_until_ready(alone)
    texts = [sentence.english for sentence in held_out()[:6]]
    for beam, some in ((1, texts), (4, texts[:4])):
        for found, text in zip(alone.evaluate(IN_BROWSER, [some, beam, []]), some, strict=True):
            check_equal(found, shipped.translate(text, beam=beam))
    for text in HARD_TEXTS:
        assert alone.evaluate("(text) => atlas.model.encode(text)", text) == shipped.encode(text)
    heads = {"decoder.2.cross": off(2), "encoder.0.self": off(5)}
    found = alone.evaluate(IN_BROWSER, [texts[:3], 1, ["cross.2.2", "encoder-self.0.5"]])
    with intervene(heads):
        for one, text in zip(found, texts, strict=False):
            check_equal(one, shipped.translate(text))


def test_a_reader_translates_switches_a_head_off_and_goes_offline(
    newcomer: Page, site: str, site_folder: Path, sent: list[int], shipped: Translator
) -> None:
    newcomer.goto(site)
    newcomer.get_by_role("button", name="noir").click()  # the sentence of the index needs no model
    expect(newcomer.locator("[data-part=say]")).to_contain_text("black")
    newcomer.get_by_role("link", name="The Transformer").click()
    wait_until_ready(newcomer)
    check_first_visit(newcomer, sent)
    newcomer.get_by_label("An English sentence").fill("if it rains")
    newcomer.keyboard.press("Tab")
    expect(newcomer.locator("html")).to_have_attribute("data-shown", "if it rains")
    result = newcomer.locator("[data-part=result]")
    expect(result).to_have_text(shipped.translate("if it rains").text)
    expect(newcomer.locator(".claims [data-holds=true]")).to_have_count(2)
    assert newcomer.locator(".head canvas").count() == 24
    newcomer.get_by_role("switch", name="Switch off Layer 3, head 3").first.click()
    expect(newcomer.locator("html")).to_have_attribute("data-off", "cross.2.2")
    with intervene({"decoder.2.cross": off(2)}):
        expect(result).to_have_text(shipped.translate("if it rains").text)
    expect(newcomer.locator("p[data-part=whole]")).to_have_text(shipped.translate("if it rains").text)
    assert "off=cross.2.2" in newcomer.url
    newcomer.get_by_label("An English sentence").fill("漢字")
    expect(newcomer.get_by_role("alert")).to_contain_text("The model knows no word")

    sent.clear()
    newcomer.goto(f"{site}en/walk.html")  # of the same model: its own first picture is loaded alone
    wait_until_ready(newcomer)
    assert sent == [(site_folder / SUB_PATH / "models" / "recorded" / "walk.en.bin").stat().st_size]

    newcomer.goto(f"{site}pt-BR/")
    keep_offline(newcomer)
    newcomer.context.set_offline(True)
    for language in ("en", "pt-BR"):
        newcomer.goto(f"{site}{language}/transformer.html#text=the+letter")
        wait_until_ready(newcomer)
        expect(result).to_have_text(shipped.translate("the letter").text)


SAME = (
    (
        "transformer.html#text=the+cat&beam=4&off=cross.2.1",
        "transformer?lang=en&t-text=the+cat&t-search=beam+4&t-without=cross-3.2&head=cross.2.2",
    ),
    ("writer.html#seed=2&topk=5", "model-lab?lang=en&ml-start=The+black+cat+is+sleeping+on&ml-topk=5&ml-seed=2"),
    (
        "vision-transformer.html#model=vit-cifar10&sample=cat",
        "vision-transformer?lang=en&vt-model=vit-cifar10&vt-sample=cat",
    ),
)


def test_the_link_to_the_app_shows_the_same(alone: Page, site: str) -> None:
    for page, address in SAME:
        alone.goto(f"{site}en/{page}")
        wait_until_ready(alone)
        expect(alone.get_by_role("link", name="Open in the app")).to_have_attribute("href", f"{APP}{address}")


def test_a_page_runs_no_script_of_its_markup(alone: Page, site: str) -> None:
    alone.goto(f"{site}en/")
    alone.evaluate("() => { document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.ran = 1\">'); }")
    alone.locator("img[src=x]").evaluate("(image) => image.decode().catch(() => {})")
    assert alone.evaluate("() => window.ran === undefined")


BY_THE_MODEL = {
    "transformer": "atlas.model.translate(data.example)",
    "writer": "atlas.model.run(data.example, { newTokens: 12 })",
    "vision-transformer": """(await atlas.open("vit-fashion-mnist")).classify(
      await atlas.decode(await (await fetch(new URL("../pictures/t-shirt.png", location))).blob()))""",
}
DIFFERENCES = """async () => {
  const { readRecorded } = await import(new URL("../model_page.js", location));
  const { attentionWeights } = await import(new URL("../attention.js", location));
  const data = JSON.parse(document.getElementById("data").textContent);
  const { loadFile } = await import(new URL("../page.js", location));
  const [one, other] = [readRecorded(new Uint8Array(await loadFile(data.recorded))), await COMPUTED];
  const farthest = (a, b) => a.reduce((most, value, i) => Math.max(most, Math.abs(value - b[i])), a.length - b.length);
  const ofCalls = Object.entries(other.calls).flatMap(([group, calls]) =>
    calls.map((call, i) => farthest(attentionWeights(one.calls[group][i]), attentionWeights(call))));
  const names = Object.keys(one).filter((name) => Array.isArray(one[name]) || typeof one[name] !== "object");
  const same = (a, b) => Number(JSON.stringify(a) !== JSON.stringify(b));
  const apart = (a, b) => typeof a === "number" ? Math.abs(a - b) : a?.length && typeof a[0] === "number"
    ? farthest([...a], [...b]) : same(a, b);
  const differences = names.map((name) => [name, apart(one[name], other[name])]);
  return { maps: Math.max(...ofCalls), ...Object.fromEntries(differences) };
}"""


@pytest.mark.parametrize("name", BY_THE_MODEL)
def test_the_example_is_shown_before_its_model_has_arrived(newcomer: Page, site: str, name: str) -> None:
    """The recorded result and its maps are those that the model then computes."""
    waiting = []
    newcomer.add_init_script("delete Navigator.prototype.serviceWorker")  # whose requests no route sees
    newcomer.route("**/weights.*", lambda route: waiting.append(route))
    newcomer.goto(f"{site}en/{name}.html")
    expect(newcomer.locator("[data-part=measured]")).to_contain_text("Recorded")
    expect(newcomer.get_by_role("status")).to_contain_text("Loading the model")
    assert newcomer.locator(".head canvas").count() > 8
    assert newcomer.locator(".claims [data-holds=true]").count() >= 1
    shown = newcomer.locator("[data-part=result]").inner_text()
    newcomer.unroute("**/weights.*")
    for route in waiting:
        route.continue_()
    wait_until_ready(newcomer)
    expect(newcomer.locator("[data-part=measured]")).not_to_contain_text("Recorded")
    expect(newcomer.locator("[data-part=result]")).to_have_text(shown)
    differences = newcomer.evaluate(DIFFERENCES.replace("COMPUTED", BY_THE_MODEL[name]))
    check_it_fits(newcomer)
    check_everyone_can_use_it(newcomer)
    assert {"maps", "logProbability" if "logProbability" in differences else "probabilities"} <= differences.keys()
    assert {each: value for each, value in differences.items() if not value < 1e-4} == {}


def test_another_model_offline_takes_the_old_result_away(newcomer: Page, site: str) -> None:
    newcomer.goto(f"{site}en/vision-transformer.html")
    wait_until_ready(newcomer)
    status, result = newcomer.get_by_role("status"), newcomer.locator("[data-part=result]")
    expect(status).to_contain_text("works offline")
    newcomer.context.set_offline(True)
    newcomer.locator("select[name=model]").select_option("vit-cifar10")
    expect(status).to_contain_text("You are offline, and your browser has not kept this model")
    expect(result).to_be_hidden()
    expect(newcomer.locator(".view-host")).to_be_hidden()
    newcomer.context.set_offline(False)
    newcomer.locator("select[name=model]").select_option("vit-fashion-mnist")
    expect(result).to_contain_text("T-shirt")


def test_a_sentence_typed_before_the_page_listens_is_translated(newcomer: Page, site: str, shipped: Translator) -> None:
    waiting = []
    newcomer.add_init_script("delete Navigator.prototype.serviceWorker")  # whose requests no route sees
    newcomer.route("**/transformer.js", lambda route: waiting.append(route))
    newcomer.goto(f"{site}en/transformer.html", wait_until="commit")
    newcomer.get_by_label("An English sentence").fill("if it rains")
    newcomer.wait_for_timeout(100)
    for route in waiting:
        route.continue_()
    newcomer.unroute("**/transformer.js")
    wait_until_ready(newcomer)
    expect(newcomer.locator("[data-part=result]")).to_have_text(shipped.translate("if it rains").text)


TEXTS_TO_WRITE = (
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


def check_written(found: dict[str, Any], run: HubRun) -> None:
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
    texts = starts(5)
    for found, text in zip(alone.evaluate(WRITTEN, [texts, {"newTokens": 12}]), texts, strict=True):
        check_written(found, writer.run(text, max_new_tokens=12))
    found = alone.evaluate(WRITTEN, [list(TEXTS_TO_WRITE), {"newTokens": 0}])
    for one, text in zip(found, TEXTS_TO_WRITE, strict=True):
        check_written(one, writer.run(text, max_new_tokens=0))
    for temperature, top_k, seed in ((0.7, 0, 0), (1.5, 20, 9999)):
        sampling = {"temperature": temperature, "topK": top_k, "seed": seed}
        found = alone.evaluate(WRITTEN, [texts[:4], {"newTokens": 16, "sampling": sampling}])
        for one, text in zip(found, texts, strict=False):
            check_written(one, writer.run(text, max_new_tokens=16, sampling=Sampling(temperature, top_k, 1.0, seed)))
    found = alone.evaluate(WRITTEN, [texts[:3], {"newTokens": 12, "off": ["decoder-self.1.3", "decoder-self.2.0"]}])
    with intervene({"decoder.1.self": off(3), "decoder.2.self": off(0)}):
        for one, text in zip(found, texts, strict=False):
            check_written(one, writer.run(text, max_new_tokens=12))

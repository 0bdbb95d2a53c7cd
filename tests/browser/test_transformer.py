"""A newcomer's journeys: the sentence on the home page, and a translation to a value of a head."""

import re
from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import nbformat
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.page_checks import watch
from ui.blocks.linked_sentences import recorded
from viz_core.hub import load_hub
from viz_core.lab.walk import walk_writing
from viz_core.lab.walk_records import Walk
from viz_core.pretrained import Translator, load
from viz_core.pretrained.samples import default_beginning
from viz_core.trace import intervene, off


@pytest.fixture(scope="module")
def translator() -> Translator:
    return load("transformer-en-fr")


def test_type_translate_open_a_head_and_read_its_weight(page: Page, app_url: str, translator: Translator) -> None:
    """The first screen has sentence, translation and one head whole; then nonsense gets a sentence, and stays."""
    page.set_viewport_size({"width": 1400, "height": 900})
    page.goto(f"{app_url}/transformer")
    box, maps = page.get_by_label("An English sentence"), page.get_by_role("application", name="Attention map")
    for shown in (box, page.get_by_role("heading", name="Le chat noir"), maps):
        expect(shown).to_be_in_viewport(ratio=1)
    box.fill("😀😀")
    box.press("Enter")
    expect(page.get_by_text("The model knows no word or sign in this text.")).to_be_visible()
    expect(box).to_have_value("😀😀")
    box.fill("I am happy.")
    box.press("Enter")
    result = translator.translate("I am happy.")
    expect(page.get_by_role("heading", name=result.text)).to_be_visible()
    assert parse_qs(urlsplit(page.url).query)["t-text"] == ["I am happy."]

    word, first = page.locator(".predicted-word").first, result.words[0]
    expect(word).to_contain_text(first.text)
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    tip = word.locator(".predicted-tip")
    expect(tip).to_be_hidden()
    word.focus()  # as the Tab key and a tap do
    expect(tip).to_be_visible()
    expect(tip).to_contain_text(first.rivals[0].text)
    word.blur()  # what lies behind a word lies over the maps
    expect(tip).to_be_hidden()

    page.get_by_role("tab", name="Cross").click()
    page.locator('button[data-layer="1"][data-head="3"]').click()
    page.wait_for_url(re.compile(r"head=cross\.1\.3"))
    field, more = page.locator("[data-part=filter]"), page.locator(".view").get_by_role("button", name="More")
    expect(field).to_be_hidden()
    page.get_by_role("application").focus()
    page.keyboard.press("/")
    expect(field).to_be_focused()
    for is_open in (False, True):
        more.press("Enter")
        expect(field).to_be_visible(visible=is_open)
    page.get_by_role("application").focus()
    page.keyboard.press("ArrowDown")  # from the first cell: the first press shows it or moves one row down
    page.keyboard.press("ArrowRight")
    # Not the summary that is announced when a map opens.
    announcement = page.locator("[aria-live]").filter(has_text="looks at")
    expect(announcement).to_contain_text("Layer 2, head 4")
    query, key, value = _parse(announcement.inner_text())
    weights = result.trace["decoder.1.cross"].weights(head=3)[0]
    row, column = result.target_tokens.index(query), result.source_tokens.index(key)
    assert value == pytest.approx(float(weights[row, column]), abs=0.006)

    page.locator(".st-key-section-worth summary").first.click()
    page.get_by_role("link", name="layer 1, head 5").click()  # in the sentence under what heads are worth
    page.wait_for_url(re.compile(r"head=cross\.0\.4"))
    expect(page.locator('button[data-layer="0"][data-head="4"]')).to_have_attribute("aria-selected", "true")
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    page.go_back()
    expect(page.locator('button[data-layer="1"][data-head="3"]')).to_have_attribute("aria-selected", "true")
    expect(field).to_be_visible()  # still


def test_the_aligning_head_is_switched_off_on_its_thumbnail_and_the_translation_changes(
    page: Page, app_url: str, translator: Translator
) -> None:
    """Off by the thumbnail, in the address, with both translations to read; on again by the switch of the open head."""
    text = "I have never seen such a big dog."
    with intervene({"decoder.2.cross": off(2)}):
        without = translator.translate(text)
    plain = translator.translate(text)
    assert [plain.text, without.text] == [f"Je n'ai jamais vu un {each} chien." for each in ("aussi gros", "gros")]
    page.goto(f"{app_url}/transformer?{urlencode({'t-text': text})}")
    head = page.locator('button.head[data-layer="2"][data-head="2"]')
    expect(head).to_have_attribute("aria-selected", "true")  # the aligning head opens first
    head.hover()
    expect(page.locator("[data-part=openName]").first).to_have_text("Layer 3, head 3: aligns words")
    page.get_by_role("switch", name="Switch off Layer 3, head 3").first.click()
    page.wait_for_url(re.compile(r"t-without=cross-3\.3"))
    expect(page.locator(".st-key-translation-without")).to_contain_text("Without head 3 of layer 3 (cross-attention)")
    for name, found in (("with", plain), ("without", without)):
        expect(page.locator(f".st-key-translation-{name}").get_by_role("heading")).to_contain_text(found.text)
    expect(head).to_have_class(re.compile(r"\boff\b"))
    page.locator("[data-part=openSwitch]").click()
    expect(page.locator(".st-key-translation-without")).to_have_count(0)
    expect(head).not_to_have_class(re.compile(r"\boff\b"))


def _parse(announcement: str) -> tuple[str, str, float]:
    """Query, key and value of "Layer 2, head 4: suis looks at am, 0.71."."""
    found = re.search(r": (?P<query>.+) looks at (?P<key>.+), (?P<value>\d\.\d+)\.", announcement)
    assert found, announcement
    return found["query"], found["key"], float(found["value"])


def test_files_in_a_row_are_each_saved_and_the_notebook_opens_what_was_open(page: Page, app_url: str) -> None:
    """Equal answers to equal requests used not to reach the view, and a view built anew forgot its request."""
    page.goto(f"{app_url}/transformer?t-text=I+lost.&head=encoder-self.1.3&pin=q1")
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    for kind in ("page", "page", "notebook"):
        page.locator("[data-part=exports] summary").click()
        with page.expect_download() as download:
            page.locator(f"[data-export={kind}]").click()
        if kind == "page":
            assert "<title>Attention Atlas" in download.value.path().read_text(encoding="utf-8")
    assert download.value.suggested_filename == "attention-encoder-self-layer-2-head-4.ipynb"
    names: dict[str, Any] = {}
    for cell in nbformat.read(download.value.path(), as_version=4).cells[1:]:
        exec(cell.source, names)
    assert (names["shown"].site, names["shown"].head, names["shown"].pins) == ("encoder.1.self", 3, ("q1",))
    assert names["run"].source_tokens[:2] == ("I", "lost")


PRESSED = ".word[aria-pressed=true]"


def word(page: Page, line: str, text: str) -> Locator:
    return page.locator(f"[data-part={line}] .word").filter(has_text=re.compile(rf"^{text}(\d+%)?$"))


def test_words_light_up_at_once_and_offline(page: Page, app_url: str) -> None:
    page.goto(app_url)
    stored = recorded()
    noir, black = stored["lines"][1].index("noir"), stored["lines"][0].index("black")
    expect(page.locator(PRESSED)).to_have_text("noir")  # the order of these two words changes: it opens on that
    expect(word(page, "first", "black")).to_have_text(f"black{stored['across']['weights'][noir][black]:.0%}")
    expect(page.locator(".sentences path").first).to_have_css("stroke", "rgb(163, 75, 130)")  # the weights' purple
    expect(word(page, "first", "black")).to_have_css("background-color", re.compile(r"srgb 0\.639\d+ 0\.294\d+ 0\.509"))
    expect(page.locator(PRESSED)).to_have_css("background-color", "rgb(0, 114, 178)")  # the queries' blue
    page.context.set_offline(True)
    word(page, "second", "chat").hover()
    expect(page.locator(PRESSED)).to_have_text("chat")
    expect(page.locator("[data-part=say]")).to_contain_text("“cat”")
    word(page, "first", "bed").click()
    expect(word(page, "second", "lit")).to_have_attribute("data-lit", "")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(PRESSED)).to_have_text("my")
    page.keyboard.press("ArrowDown")
    expect(page.locator("[data-part=second] " + PRESSED)).to_have_count(1)
    page.context.set_offline(False)
    page.set_viewport_size({"width": 390, "height": 844})
    word(page, "second", "noir").click()
    expect(page.locator(".sentences path").first).to_have_attribute("d", re.compile("V"))  # straight, beside a word
    page.get_by_label("Your sentence").fill("I'm home.")
    page.get_by_label("Your sentence").press("Enter")
    word(page, "second", "suis").click()
    expect(page.locator(PRESSED)).to_have_text("suis")
    assert "h-text=I%27m+home." in page.url


START = "walk?walk-at=tokens.0.0.0.0~0~3~~stage"
SCORES = "walk?walk-at=scores.0.0.0.0~1~3~~stage"


@cache
def walk() -> Walk:
    return walk_writing(load_hub("writer-en", offline=True), default_beginning())


@pytest.fixture
def walking(page: Page) -> Page:
    page.emulate_media(reduced_motion="reduce")  # nothing plays by itself, and the camera is there at once
    watch(page)
    return page


def at(page: Page, **place: object) -> None:
    """The walk is at this place."""
    wanted = "".join(f'[data-{name}="{value}"]' for name, value in place.items())
    expect(page.locator(f".walk{wanted}")).to_be_visible()


def test_from_the_tokens_to_the_word_and_back(walking: Page, app_url: str) -> None:
    walking.goto(f"{app_url}/{START}")
    at(walking, stage="tokens")
    texts = "async (canvas) => (await new Promise(requestAnimationFrame), canvas.written.map(({ text }) => text))"
    assert "decoder layer 2" in walking.locator(".walk canvas").evaluate(texts), "though its top is out of sight"
    step, sentence = walking.get_by_role("button", name="Next step"), walking.locator("[data-part=say]")
    for stage in "embedding rotation projections scores mask softmax sum heads residual feed-forward".split():
        step.click()
        at(walking, stage=stage)
    step.click()
    at(walking, stage="projections", block=1)  # asked for, and come
    walking.get_by_role("button", name="Choice").click()
    at(walking, stage="choice", block=3, round=0)
    expect(sentence).to_contain_text(f"“{walk().written[0]}”")
    step.click()
    at(walking, stage="again", round=1)
    expect(walking).to_have_url(re.compile(r"walk-at=again"))
    walking.get_by_role("slider", name="Time line").press("Home")
    at(walking, stage="tokens", round=0)
    expect(sentence).to_have_text(f"Tokens. The input is cut into {walk().num_given} tokens.")


def test_a_head_is_switched_off_and_on_and_into_a_cell_and_out_by_the_keyboard(walking: Page, app_url: str) -> None:
    walking.goto(f"{app_url}/{SCORES}")
    walking.get_by_role("button", name="Switch off head 2 of layer 1").click()
    at(walking, edits=1)
    expect(walking).to_have_url(re.compile(r"walk-edits=off_decoder\.0\.self_1"))
    walking.get_by_role("button", name="Undo all changes").click()
    at(walking, edits=0)
    at(walking, stage="scores", head=1)
    stage = walking.get_by_role("application")
    stage.press("ArrowRight")
    stage.press("ArrowUp")
    at(walking, row=2)
    for zoom in ("row", "cell"):
        stage.press("+")
        at(walking, zoom=zoom)
    call = walk().stacks[0].blocks[0].attentions[0]
    column = min(int(call.weights[1, 3].argmax()) + 1, 6)  # the arrow went to the right of the strongest key
    score = f"{call.scores[1, 2, column]:.3f}".replace("-", "−")
    expect(walking.locator("[data-part=sums]")).to_contain_text(f"Divided by √32: {score}")
    for zoom in ("row", "stage", "layer", "model"):
        stage.press("-")
        at(walking, zoom=zoom)

"""The page of the vision transformers: preprocessing, probabilities and maps are Python's."""

import base64
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from playwright.sync_api import Page, expect

from benchmarks.static_site import packing, unpack, wait_until_ready
from tests.browser.accessibility import check_everyone_can_use_it, check_first_visit, check_it_fits, keep_offline
from viz_core.images.open_image import open_picture
from viz_core.lab.walk import walk_translation
from viz_core.lab.walk_records import Edits, Walk
from viz_core.pretrained import ImageClassifier, Translator, load
from viz_core.pretrained.samples import drawn_picture
from viz_core.trace import intervene, off
from viz_core.view.components import group_labels
from viz_core.view.shipped import picture_groups

CLASSIFIED = packing("""async ([content, name, off]) => {
  const { decode } = atlas;
  const { measures: register } = JSON.parse(document.getElementById("data").textContent);
  const { attentionWeights, measureMap } = await import(new URL("../attention.js", location));
  const bytes = Uint8Array.from(atob(content), (sign) => sign.charCodeAt(0));
  const classifier = await atlas.open(name);
  const { calls: groups, ...found } = await classifier.classify(await decode(new Blob([bytes])), off);
  const calls = groups["encoder-self"];
  const maps = calls.map((call) => attentionWeights(call));
  const [rows, columns] = [calls[0].queries.length / calls[0].heads / calls[0].size, maps[0].length];
  const info = { rows, columns: rows, onItself: true, separators: [] };
  info.image = { grid: [Math.sqrt(rows - 1), Math.sqrt(rows - 1)], special: 1 };
  const measure = (map, head) => measureMap(register, map.subarray(head * rows * rows, (head + 1) * rows * rows), info);
  const measures = maps.map((map) => Array.from({ length: calls[0].heads }, (_, head) => measure(map, head)));
  return { pixels: pack(found.pixels), probabilities: found.probabilities, maps: maps.map(pack), measures };
}""")
MODELS = ("vit-fashion-mnist", "vit-cifar10")


@pytest.fixture(scope="session")
def classifiers() -> dict[str, ImageClassifier]:
    models = {name: load(name, device="cpu") for name in MODELS}
    return {name: model for name, model in models.items() if isinstance(model, ImageClassifier)}


def as_png(image: Image.Image) -> bytes:
    content = io.BytesIO()
    image.save(content, "PNG")
    return content.getvalue()


def pictures() -> list[bytes]:
    """Samples, one of them large, noise of awkward sizes, and a grey one on black."""
    noise = np.random.default_rng(0).integers(0, 256, (97, 203, 3), dtype=np.uint8)
    dark = np.zeros((61, 40), np.uint8)
    dark[10:50, 8:30] = 200
    drawn = (drawn_picture("ankle-boot"), drawn_picture("trouser"), drawn_picture("bag").resize((700, 511)))
    return [*map(as_png, (*drawn, Image.fromarray(noise), Image.fromarray(dark)))]


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def test_pixels_probabilities_and_maps_are_those_of_python(
    alone: Page, site: str, classifiers: dict[str, ImageClassifier]
) -> None:
    alone.goto(f"{site}en/vision-transformer.html")
    wait_until_ready(alone)
    columns_first = pictures()[1]  # the trousers: for such tall pictures Pillow may filter columns before rows
    for name, model in classifiers.items():
        for content in pictures():
            found = alone.evaluate(CLASSIFIED, [encoded(content), name, []])
            check_equal(found, model, content, levels=1 if content == columns_first else 0)
        switched = alone.evaluate(CLASSIFIED, [encoded(pictures()[0]), name, ["encoder-self.1.2", "encoder-self.4.0"]])
        with intervene({"encoder.1.self": off(2), "encoder.4.self": off(0)}):
            check_equal(switched, model, pictures()[0], levels=0)


def check_equal(found: dict[str, Any], model: ImageClassifier, content: bytes, levels: int) -> None:
    """Pixels are at most so many of 255 levels off; what the model makes of the same pixels is equal."""
    prepared = model.prepare(open_picture(content))
    pixels = torch.tensor(unpack(found["pixels"], tuple(prepared.pixels.shape)))
    assert float((pixels - prepared.pixels).abs().max()) <= 1.001 * levels / 255 / min(model.preparation.std)
    expected = model.classify_prepared(replace(prepared, pixels=pixels))
    for label, chance in zip(model.labels, found["probabilities"], strict=True):
        assert chance == pytest.approx(expected.probabilities[label], abs=1e-5)
    (group,) = picture_groups(expected, group_labels("vision-transformer"))
    for layer, call in enumerate(group.calls):
        weights = call.weights()[0].numpy()
        assert np.abs(weights - unpack(found["maps"][layer], weights.shape)).max() < 1e-4
        for fingerprint, measured in zip(group.picture(layer).fingerprints, found["measures"][layer], strict=True):
            assert {name: fingerprint[name] for name in measured} == pytest.approx(measured, abs=1e-4)


def test_a_reader_chooses_draws_and_uploads(
    newcomer: Page, site: str, sent: list[int], classifiers: dict[str, ImageClassifier], tmp_path: Path
) -> None:
    newcomer.goto(f"{site}en/")
    newcomer.get_by_role("link", name="Vision Transformer").click()
    wait_until_ready(newcomer)
    check_first_visit(newcomer, sent)
    result = newcomer.locator("[data-part=result]")
    expect(result).to_contain_text("T-shirt")
    newcomer.get_by_role("combobox", name="Model").select_option(label="Animals, vehicles")
    expect(result).to_contain_text("truck")
    newcomer.get_by_role("switch", name="Switch off Layer 5, head 1").first.click()
    expect(newcomer.locator("html")).to_have_attribute("data-off", "encoder-self.4.0")
    assert "model=vit-cifar10&off=encoder-self.4.0" in newcomer.url
    newcomer.get_by_role("combobox", name="Picture").select_option(label="Draw")
    paper = newcomer.get_by_role("application", name="Drawing area")
    paper.focus()
    for key in ("Space", *["ArrowDown"] * 6, "Space"):
        newcomer.keyboard.press(key)
    expect(newcomer.locator("html")).to_have_attribute("data-shown", "vit-cifar10 draw truck")
    newcomer.get_by_role("combobox", name="Picture").select_option(label="Upload")
    (tmp_path / "notes.png").write_text("no picture")
    newcomer.locator("input[type=file]").set_input_files(tmp_path / "notes.png")
    expect(newcomer.get_by_role("alert")).to_contain_text("PNG, JPEG, WebP, or GIF pictures can be opened")
    drawn_picture("frog").save(tmp_path / "frog.png")
    newcomer.locator("input[type=file]").set_input_files(tmp_path / "frog.png")
    expect(result).to_contain_text("frog")


TEXT = "The black cat is sleeping on my bed."
EDITS: Edits = (("off", "decoder.0.cross", "2"), ("off", "encoder.1.self", "5"))
HEADS = ["cross.0.2", "encoder-self.1.5"]  # the same as the page names them
LARGEST = 1e-4
DIGITS = 1e-6  # of the largest number of an array: float32 has seven digits, and some scores are near 1,000
STATES = ("input", "neurons", "ffn", "output")
CALLS = ("queries", "keys", "values", "scores", "weights", "outputs", "joined", "added", "state")

OF_WALK = packing("""async ([text, off]) => {
  const { walkOf } = await import(new URL("../walk.js", location));
  const { translate, nameOf } = atlas.translator;
  const walk = walkOf(await translate(text, { off }), nameOf);
  const packed = (parts) => Object.fromEntries(Object.entries(parts).filter(([, part]) => part.values)
    .map(([name, { values }]) => [name, pack(values)]));
  return walk.stacks.map(({ blocks }) => blocks.map(({ attentions, ...states }) => ({
    ...packed(states), attentions: attentions.map(packed),
  })));
}""")


@pytest.fixture(scope="module")
def shipped() -> Translator:
    return load("transformer-en-fr", device="cpu")


def check_numbers(found: list[Any], walk: Walk) -> None:
    """Every number of every block, before it is rounded to be sent."""
    for own, stack in zip(found, walk.stacks, strict=True):
        for numbers, block in zip(own, stack.blocks, strict=True):
            pairs = [(numbers[name], getattr(block, name)) for name in STATES]
            for call, attention in zip(numbers["attentions"], block.attentions, strict=True):
                pairs += [(call[name], getattr(attention, name)) for name in CALLS]
            for text, expected in pairs:
                most = max(LARGEST, DIGITS * np.abs(expected).max())
                assert np.abs(unpack(text, expected.shape) - expected).max() < most


def test_the_component_gets_the_numbers_of_the_app(alone: Page, site: str, shipped: Translator) -> None:
    alone.goto(f"{site}en/walk.html#text=the+cat&at=softmax.1.2.1.0~~1~~stage")
    wait_until_ready(alone)
    expect(alone.locator("[data-part=head]")).to_have_text("head 3 of 8 · aligns words")
    check_numbers(alone.evaluate(OF_WALK, [TEXT, HEADS]), walk_translation(shipped, TEXT, EDITS))


def test_a_reader_plays_steps_and_switches_a_head_off(
    newcomer: Page, site: str, sent: list[int], shipped: Translator
) -> None:
    newcomer.goto(f"{site}en/walk.html#text=the+letter&at=scores.0.0.0.0~1~0~~stage")
    wait_until_ready(newcomer)
    check_first_visit(newcomer, sent)
    walk = newcomer.locator("div.walk")
    expect(walk).to_have_attribute("data-stage", "scores")
    newcomer.get_by_role("button", name="Next step").click()
    expect(walk).to_have_attribute("data-stage", "softmax")
    newcomer.get_by_role("button", name="Switch off head 2 of layer 1").click()
    expect(walk).to_have_attribute("data-edits", "1")
    assert "off=encoder-self.0.1" in newcomer.url
    written = walk_translation(shipped, "the letter", (("off", "encoder.0.self", "1"),)).written
    expect(newcomer.locator("[data-part=outcomes] p").nth(1)).to_contain_text(written[-1])
    newcomer.get_by_role("button", name="Undo all changes").click()
    expect(walk).to_have_attribute("data-edits", "0")
    newcomer.goto(f"{site}zh-TW/")
    keep_offline(newcomer)
    newcomer.context.set_offline(True)
    newcomer.goto(f"{site}zh-TW/walk.html")
    wait_until_ready(newcomer)
    check_it_fits(newcomer)
    check_everyone_can_use_it(newcomer)

"""The walk without a server: it shows the app's numbers, and a reader steps through it and switches heads off."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from benchmarks.static_site import packing, unpack, wait_until_ready
from serving.walk.steps import Edits, Walk
from serving.walk.walks import walk_translation
from tests.browser.static_pages import check_everyone_can_use_it, check_first_visit, check_it_fits
from ui.widgets.walk import encode_walk
from viz_core.pretrained import Translator, load
from viz_core.view.framing import unframe

TEXT = "The black cat is sleeping on my bed."
EDITS: Edits = (("off", "decoder.0.cross", "2"), ("off", "encoder.1.self", "5"))
HEADS = ["cross.0.2", "encoder-self.1.5"]  # the same as the page names them
LARGEST = 1e-4
DIGITS = 1e-6  # of the largest number of an array: float32 has seven digits, and some scores are near 1,000
TYPES = {"f4": np.float32, "f2": np.float16, "u1": np.uint8, "i1": np.int8}
STATES = ("input", "neurons", "ffn", "output")
CALLS = ("queries", "keys", "values", "scores", "weights", "outputs", "joined", "added", "state")

OF_WALK = packing("""async ([text, heads, edits, blocks]) => {
  const { encodeWalk, walkOf } = await import(new URL("../walk_source.js", location));
  const { sizes } = JSON.parse(document.getElementById("data").textContent);
  const { translate, nameOf } = atlas.translator;
  const walkWith = async (off) => walkOf(await translate(text, { off }), sizes, nameOf);
  const base64 = ({ buffer, byteOffset, byteLength }) => {
    const bytes = new Uint8Array(buffer, byteOffset, byteLength);
    let text = "";
    for (let i = 0; i < bytes.length; i += 4096) text += String.fromCharCode(...bytes.subarray(i, i + 4096));
    return btoa(text);
  };
  const packed = (parts) => Object.fromEntries(Object.entries(parts).filter(([, part]) => part.values)
    .map(([name, { values }]) => [name, pack(values)]));
  const walk = await walkWith(heads);
  const before = heads.length ? await walkWith([]) : null;
  const about = { key: "k", edits, before, words: {}, links: {}, language: "en", state: "" };
  const numbers = walk.stacks.map(({ blocks }) => blocks.map(({ attentions, ...states }) => ({
    ...packed(states), attentions: attentions.map(packed),
  })));
  return { numbers, payloads: blocks.map((block) => base64(encodeWalk(walk, { ...about, block }))) };
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


def check_equal(own: Any, other: Any, own_data: bytes, other_data: bytes) -> None:
    """Two headers with their arrays: equal but for rounding."""
    if isinstance(other, dict) and "offset" in other:
        assert (own["shape"], own["type"]) == (other["shape"], other["type"])
        left, right = (array_of(each, data) for each, data in ((own, own_data), (other, other_data)))
        most = float(np.abs(right).max())
        step = {"f4": 0.0, "f2": 2**-10 * most, "u1": 1.0, "i1": 1.0}[other["type"]]
        assert np.abs(left - right).max() <= step + max(LARGEST, DIGITS * most)
        assert own.get("scale", 0) == pytest.approx(other.get("scale", 0), abs=LARGEST, rel=DIGITS)
    elif isinstance(other, dict):
        assert own.keys() == other.keys()
        for name in other:
            check_equal(own[name], other[name], own_data, other_data)
    elif isinstance(other, list):
        assert len(own) == len(other)
        for pair in zip(own, other, strict=True):
            check_equal(*pair, own_data, other_data)
    elif isinstance(other, float):
        assert own == pytest.approx(other, abs=LARGEST, rel=1e-5)
    else:
        assert own == other


def array_of(described: dict[str, Any], data: bytes) -> np.ndarray:
    _, start = unframe(data)
    count = int(np.prod(described["shape"]))
    return np.frombuffer(data, TYPES[described["type"]], count, start + described["offset"]).astype(np.float32)


@pytest.mark.parametrize(("heads", "edits"), [([], ()), (HEADS, EDITS)])
def test_the_component_gets_the_numbers_of_the_app(
    alone: Page, site: str, shipped: Translator, heads: list[str], edits: Edits
) -> None:
    alone.goto(f"{site}en/walk.html")
    wait_until_ready(alone)
    blocks = [(0, 1), (1, 0), (1, 2)]
    found = alone.evaluate(OF_WALK, [TEXT, heads, [list(edit) for edit in edits], [list(block) for block in blocks]])
    walk = walk_translation(shipped, TEXT, edits)
    check_numbers(found["numbers"], walk)
    before = walk_translation(shipped, TEXT) if edits else None
    settings: dict[str, Any] = {"edits": edits, "before": before, "words": {}, "links": {}, "language": "en"}
    for block, text in zip(blocks, found["payloads"], strict=True):
        own = base64.b64decode(text)
        expected = encode_walk(walk, key="k", kind="translator", block=block, **settings)
        check_equal(unframe(own)[0], unframe(expected)[0], own, expected)


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
    newcomer.get_by_role("button", name="Play").click()
    expect(walk).to_have_attribute("data-playing", "true")
    newcomer.get_by_role("button", name="Pause").click()
    expect(walk).to_have_attribute("data-playing", "false")
    newcomer.get_by_role("button", name="Softmax").click()
    newcomer.get_by_role("application").press("ArrowRight")  # a cell, whose key could be hidden in the app
    expect(newcomer.get_by_role("button", name="Hide")).to_have_count(0)
    newcomer.get_by_role("button", name="Switch off head 2 of layer 1").click()
    expect(walk).to_have_attribute("data-edits", "1")
    assert "off=encoder-self.0.1" in newcomer.url
    written = walk_translation(shipped, "the letter", (("off", "encoder.0.self", "1"),)).written
    expect(newcomer.locator("[data-part=outcomes] p").nth(1)).to_contain_text(written[-1])
    newcomer.get_by_role("button", name="Undo all changes").click()
    expect(walk).to_have_attribute("data-edits", "0")
    newcomer.get_by_role("button", name="Choice").click()
    expect(newcomer.locator("[data-part=say]")).to_contain_text("The model chooses")
    newcomer.context.set_offline(True)
    newcomer.goto(f"{site}zh-TW/walk.html")
    wait_until_ready(newcomer)
    check_it_fits(newcomer)
    check_everyone_can_use_it(newcomer)

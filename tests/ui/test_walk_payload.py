"""The bytes of a walk, read back as the browser reads them, against the walk."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from ui.text.words import load_words
from ui.widgets.walk import encode_walk
from viz_core.hub import load_hub
from viz_core.images.samples import drawn_picture
from viz_core.lab.walk import walk_picture, walk_translation, walk_writing
from viz_core.lab.walk_records import Edits, Walk
from viz_core.pretrained import load
from viz_core.view.components import unframe

MAX_BYTES = 300_000
TYPES = {"f4": np.float32, "f2": np.float16, "u1": np.uint8, "i1": np.int8}


@cache
def walk_of(kind: str, edits: Edits = ()) -> Walk:
    if kind == "writer":
        return walk_writing(load_hub("writer-en", offline=True), "The little girl", edits=edits)
    if kind == "translator":
        return walk_translation(load("transformer-en-fr"), "The black cat is sleeping on my bed.", edits)
    return walk_picture(load("vit-fashion-mnist"), drawn_picture("ankle-boot"), edits)


def encoded(kind: str, block: tuple[int, int] = (0, 0), edits: Edits = (), before: Walk | None = None) -> bytes:
    words = load_words("walk", "en").group("view")
    walk = walk_of(kind, edits)
    return encode_walk(
        walk, key="k", kind=kind, block=block, edits=edits, before=before, words=words, links={}, language="en"
    )


def array(data: bytes, start: int, described: dict[str, Any]) -> np.ndarray:
    count = int(np.prod(described["shape"]))
    found = np.frombuffer(data, TYPES[described["type"]], count, start + described["offset"]).astype(np.float32)
    if described["type"] == "i1":
        found = found * np.float32(described["scale"] / 127)
    return found.reshape(described["shape"])


def tolerance(described: dict[str, Any], values: np.ndarray) -> float:
    largest = float(np.abs(values).max()) or 1.0
    return {"f4": 1e-7, "f2": 1e-3, "u1": 0.0, "i1": 0.51 / 127}[described["type"]] * largest


@pytest.mark.parametrize("kind", ["writer", "translator", "picture"])
def test_every_number_sent_is_that_of_the_walk(kind: str) -> None:
    walk = walk_of(kind)
    for s, stack in enumerate(walk.stacks):
        for b, block in enumerate(stack.blocks):
            header, start = unframe(data := encoded(kind, (s, b)))
            assert header["block"] == [s, b]
            pairs = [(header[name], getattr(block, name)) for name in ("input", "neurons", "ffn", "output")]
            pairs.append((header["stacks"][s]["embedded"], stack.embedded))
            if stack.positions is not None:
                pairs.append((header["stacks"][s]["positions"], stack.positions))
            for described, call in zip(header["attentions"], block.attentions, strict=True):
                assert (described["site"], described["heads"], described["rows"]) == (
                    call.site,
                    *call.weights.shape[:2],
                )
                names = (
                    "queries",
                    "keys",
                    "values",
                    "scores",
                    "weights",
                    "outputs",
                    "joined",
                    "added",
                    "state",
                    "allowed",
                )
                pairs += [(described[name], getattr(call, name)) for name in names]
            for described, values in pairs:
                exact = values.astype(np.float32)
                assert np.abs(array(data, start, described) - exact).max() <= tolerance(described, exact)


@pytest.mark.parametrize("kind", ["writer", "translator", "picture"])
def test_what_is_sent_is_small(kind: str) -> None:
    walk = walk_of(kind)
    last = len(walk.stacks) - 1
    assert max(len(encoded(kind, (s, 0))) for s in range(last + 1)) <= MAX_BYTES


def test_choices_are_compared_only_after_the_same_text() -> None:
    edits = (("off", "decoder.0.self", "0"), ("off", "decoder.0.self", "1"), ("off", "decoder.1.self", "0"))
    plain, edited = walk_of("writer"), walk_of("writer", edits)
    header, _ = unframe(encoded("writer", edits=edits, before=plain))
    numbers = edited.choices[0].numbers
    assert header["choices"][0]["before"]["probabilities"] == plain.choices[0].probabilities(numbers)
    for step, choice in enumerate(header["choices"]):
        same = plain.stacks[0].tokens[: 4 + step] == edited.stacks[0].tokens[: 4 + step]
        assert (choice["before"] is not None) is same
    assert unframe(encoded("writer"))[0]["choices"][0]["before"] is None


def test_outcomes_hold_every_word_before_and_after_a_change() -> None:
    plain, other = walk_of("translator"), walk_translation(load("transformer-en-fr"), "The black dog is on my bed.")
    words = load_words("walk", "en").group("view")
    settings: dict[str, Any] = {"block": (0, 0), "edits": (), "words": words, "links": {}, "language": "en"}
    header, _ = unframe(encode_walk(other, key="k", kind="translator", before=plain, **settings))
    for walk, sent in ((plain, header["outcomes"]["before"]), (other, header["outcomes"]["now"])):
        assert sent["text"] == list(walk.stacks[0].tokens)
        assert [word for word, _ in sent["words"]] == [*walk.stacks[1].tokens[1:], walk.written[-1]]
        shares = [share for _, share in sent["words"] if share is not None]
        highest = [float(choice.distribution.max()) for choice in walk.choices]
        assert shares == pytest.approx(highest), "greedy: the chosen word is the likeliest"
    assert unframe(encoded("translator"))[0]["outcomes"] is None

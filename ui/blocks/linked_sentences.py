"""The sentence on the home page: point at a word, and the words it attends to light up, in its translation too."""

import json
from collections.abc import Mapping
from typing import Any

from ui.text.head_names import head_place, pattern_word
from ui.text.words import Words
from ui.widgets.component import component
from viz_core.runtime.assets import ASSETS, reading

RECORDED = ASSETS / "gallery" / "sentences.json"
"""The sentence that opens, stored by `python -m pages.home.draw`: a fresh server needs no torch for it."""

MODEL = "transformer-en-fr"

_mount = component("linked_sentences")


def recorded() -> dict[str, Any]:
    """Return the stored sentence and its weights."""
    with reading(RECORDED):
        content: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
        return content


def compute(text: str, language: str) -> dict[str, Any]:
    """Translate a sentence; return what lights up.

    Raises:
        ValueError: if the model cannot take it; the message is for the visitor.
    """
    from ui.compute.models import sentence_request, translation_maps
    from viz_core.view.shipped import linked_sentences

    return {"text": text, **linked_sentences(translation_maps(sentence_request(MODEL, text), language))}


def draw_sentences(words: Words, found: Mapping[str, Any]) -> None:
    """Draw the two sentences."""
    heads = {name: found[name] and _named(words, found[name]) for name in ("across", "within")}
    data = {**found, **heads, "words": words.group("sentences"), "language": words.language}
    _mount(key="sentences", data=json.dumps(data).encode())


def _named(words: Words, head: Mapping[str, Any]) -> dict[str, Any]:
    """Add the head's place and its pattern in words."""
    place = head_place(head["layer"] + 1, head["head"] + 1)
    pattern = head["pattern"] and pattern_word(head["pattern"], words.language)
    return {**head, "name": place if pattern is None else words("sentences.head", place=place, pattern=pattern)}

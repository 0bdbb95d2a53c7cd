"""Pages of the site without a server that show the same as a chapter of the app (docs/site.md)."""

from __future__ import annotations

from typing import Any

from ui.text.words import Words
from viz_core.images.drawn import GARMENTS, SCENES
from viz_core.pretrained.samples import sentence

_OFF = {"without": {"name": "off"}}
_BEAMS = {"name": "beam", "values": {"greedy": "1", "beam 4": "4"}}
_OF_ANY_CHAPTER = ("head", "pin", "look", "walk-at", "walk-edits")
"""Query parameters without a chapter's prefix, of the attention view and the walk."""


def static_pages(words: Words) -> list[dict[str, Any]]:
    """Return the pages that may show the same as a chapter, in the order in which they are tried; [] where none does.

    Each has its `file`; `only`: the values that query parameters may have, "" for an absent one; and `carried`: what
    each other parameter is called there, {"name", "values" by those of the app, "initial" where the first values
    differ, "most" of a number}. With any other parameter in its URL the app shows what the page does not.
    """
    return [
        {"file": file, "only": _keyed(words, only), "carried": _keyed(words, carried)}
        for file, only, carried in _pages(words)
    ]


def _keyed(words: Words, by_control: dict[str, Any]) -> dict[str, Any]:
    return {name if name in _OF_ANY_CHAPTER else f"{words.prefix}-{name}": each for name, each in by_control.items()}


def _pages(words: Words) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """File, `only` and `carried` of each page, by the names of controls."""
    view = _OFF | _named("head", "pin", "look")
    if words.chapter == "transformer":
        text = {"name": "text", "initial": sentence("cat")}
        return [("transformer", {}, {"text": text, "search": _BEAMS} | view)]
    if words.chapter == "vision-transformer":
        models = {"name": "model", "values": {name: name for name in ("vit-fashion-mnist", "vit-cifar10")}}
        samples = {"name": "sample", "values": {name: name for name in (*GARMENTS, *SCENES)}}
        return [("vision-transformer", {"source": ["", "sample"]}, {"model": models, "sample": samples} | view)]
    if words.chapter == "model-lab":
        start = {"name": "text", "initial": words("start.decoder")}
        writing = _named("new", "temperature", "topk", "seed")
        return [("writer", {"model": ["", "writer-en"]}, {"start": start} | writing | view)]
    if words.chapter == "walk":
        text = {"name": "text", "initial": sentence("cat")}
        walk = {"walk-at": {"name": "at"}, "walk-edits": {"name": "off"}}
        return [("walk", {"model": ["translator"]}, {"text": text} | walk)]
    if words.chapter == "sinusoidal-encoding":
        return [(words.chapter, {}, _named("d", "n", "columns") | {"base": {"name": "base", "most": 20_000}})]
    if words.chapter == "relative-projection":
        return [(words.chapter, {}, _named("offset", "position", "pair"))]
    return []


def _named(*names: str) -> dict[str, Any]:
    return {name: {"name": name} for name in names}

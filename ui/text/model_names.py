"""What models that ship are called in the reader's language."""

from __future__ import annotations

from ui.text.words import load_words
from viz_core.pretrained import ModelCard


def model_title(card: ModelCard) -> str:
    """Its title; that of its card, for a model that the words do not know."""
    return _of_model("model-title", card.name, card.title)


def model_licence(card: ModelCard) -> str:
    """Its licence, likewise."""
    return _of_model("licence", card.name, card.licence)


def _of_model(what: str, name: str, else_: str) -> str:
    common = load_words("common")
    return common(f"{what}.{name}") if common.has(f"{what}.{name}") else else_

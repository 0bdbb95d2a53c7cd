"""Titles, licences and classes of the shipped models in the visitor's language."""

from __future__ import annotations

from ui.text.words import load_words
from viz_core.pretrained import ModelCard


def model_title(card: ModelCard) -> str:
    """Return a model's title; that of its card if there is no translation."""
    return _translated("model-title", card.name, card.title)


def named_model(name: str) -> str:
    """Return a shipped model's title with its name; the name alone if it has no title."""
    title = title_of(name)
    return name if title == name else load_words("common")("model-named", title=title, name=name)


def title_of(name: str) -> str:
    """Return the title of the model of this name; the name if it has no title."""
    return _translated("model-title", name, name)


def model_licence(card: ModelCard) -> str:
    """Return a model's licence; that of its card if there is no translation."""
    return licence_of(card.name, card.licence)


def licence_of(name: str, licence: str) -> str:
    """Return the licence of the model of this name; as given if there is no translation."""
    return _translated("licence", name, licence)


def class_label(name: str) -> str:
    """Return a class of a picture, or a sample picture; what the model calls it if there is no translation."""
    return _translated("class", name, name)


def trained_for(seconds: int) -> str:
    """Return how long a model was trained: "71 min"."""
    return load_words("common")("trained-minutes", count=f"{seconds // 60:,}")


def _translated(section: str, name: str, default: str) -> str:
    common = load_words("common")
    return common(f"{section}.{name}") if common.has(f"{section}.{name}") else default

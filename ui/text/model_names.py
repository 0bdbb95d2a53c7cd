"""Titles, licences and classes of the shipped models in the visitor's language."""

from __future__ import annotations

from ui.text.words import load_words
from viz_core.pretrained import ModelCard


def model_title(card: ModelCard) -> str:
    """Return a model's title; that of its card if there is no translation."""
    return _translated("model-title", card.name, card.title)


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

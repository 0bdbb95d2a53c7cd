"""The three models that this chapter compares."""

from __future__ import annotations

from collections.abc import Mapping

from viz_core.pretrained import ModelCard, available

PLAIN, ATTENTION, TRANSFORMER = "seq2seq-en-fr", "bahdanau-en-fr", "transformer-en-fr"
MODELS = (PLAIN, ATTENTION, TRANSFORMER)


def cards_there() -> Mapping[str, ModelCard]:
    """Cards of the three, plain first, of those that are there."""
    there = {card.name: card for card in available()}
    return {name: there[name] for name in MODELS if name in there}

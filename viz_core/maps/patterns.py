"""One word for what a head attends to, and the head whose word is clearest: the one to open first."""

from collections.abc import Sequence

from viz_core.maps.fingerprints import Fingerprint
from viz_core.maps.register import MEASURES

CLEAR = 0.5
"""A pattern gets at least this share of a head's weight, or aligns at least this share of the words."""

RESTING = ("diagonal", "first", "separator")
"""Patterns that relate no two words: a head looks at each word itself, or rests on a mark."""


def pattern_of(fingerprint: Fingerprint) -> str | None:
    """Return the measure that names what a head attends to; None where nothing gets `CLEAR` of its weight.

    It is the largest of its roles (measures with a target) and of its alignment accuracies.
    """
    shares = {
        name: share
        for name, share in fingerprint.items()
        if name in MEASURES and (MEASURES[name].target or MEASURES[name].unit == "accuracy")
    }
    best = max(shares, key=lambda name: shares[name], default=None)
    return best if best is not None and shares[best] >= CLEAR else None


def clearest_head(layers: Sequence[Sequence[Fingerprint]]) -> tuple[int, int] | None:
    """Return layer and head, from 0, of the head with the most weight on another word that its pattern names.

    None where no head has a pattern, or every pattern is a resting one.
    """
    found = {
        (layer, head): fingerprint[name]
        for layer, heads in enumerate(layers)
        for head, fingerprint in enumerate(heads)
        if (name := pattern_of(fingerprint)) and name not in RESTING
    }
    return max(found, key=lambda place: found[place], default=None)

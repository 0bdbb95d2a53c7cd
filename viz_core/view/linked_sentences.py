"""A sentence and its translation with two heads' weights between words: what the home page lights up."""

from collections.abc import Sequence
from typing import Any

from viz_core.maps.patterns import pattern_of
from viz_core.view.map_group import MapGroup
from viz_core.view.requests import MapRequest, PartError
from viz_core.view.shipped import aligning_head

_DECIMALS = 3


def linked_sentences(groups: Sequence[MapGroup]) -> dict[str, Any]:
    """Return the words of both sentences, and the weights of the clearest heads within the first and across.

    {lines: [source words, target words], across: {layer, head, pattern, weights: target words by source words},
    within: the same of the source's words among themselves, or null where no head of the encoder has a pattern that
    relates two words}. Layer and head count from 0. A weight between words is exact: what the pieces of a key's word
    get together, mean over the pieces of a query's word.
    """
    cross = next(group for group in groups if group.id == "cross")
    encoder = next(group for group in groups if group.id == "encoder-self")
    opened = aligning_head(tuple(groups))
    return {
        "lines": [_words(cross.key_tokens, cross.key_words), _words(cross.query_tokens, cross.query_words)],
        "across": _head(cross, opened.layer, opened.head),
        "within": _head(encoder, *encoder.clearest) if encoder.clearest else None,
    }


def _head(group: MapGroup, layer: int, head: int) -> dict[str, Any]:
    (weights,) = group.maps.parts([MapRequest(((layer, head),), words=True)])
    if isinstance(weights, PartError):
        raise weights
    return {
        "layer": layer,
        "head": head,
        "pattern": pattern_of(group.picture(layer).fingerprints[head]),
        "weights": [[round(weight, _DECIMALS) for weight in row] for row in weights.array.tolist()],
    }


def _words(tokens: Sequence[str], numbers: Sequence[int] | None) -> list[str]:
    """Join the pieces of each word."""
    found: dict[int, str] = {}
    for token, number in zip(tokens, numbers or range(len(tokens)), strict=True):
        found[number] = found.get(number, "") + token
    return list(found.values())

"""Results of shipped models as the groups an attention view shows, and as sentences whose words light up."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from viz_core.maps.alignments import best_aligner
from viz_core.maps.fingerprints import pattern_of
from viz_core.pretrained import Classification, Translation
from viz_core.pretrained.tokenization import whole_words
from viz_core.view.components import group_labels
from viz_core.view.grouping import patch_names
from viz_core.view.map_group import MapGroup, MapPicture
from viz_core.view.requests import MapRequest, Part
from viz_core.view.state import ViewState, over_picture

_DECIMALS = 3  # of weights that a page lights words by


def token_names(grid: tuple[int, int], num_special: int) -> tuple[str, ...]:
    """Class token, registers, then patches by row and column from 1: "[CLS]", "1, 1", "1, 2", ..."""
    special = ("[CLS]", *(f"[REG {i}]" for i in range(1, num_special)))[:num_special]
    return (*special, *patch_names(grid))


def picture_groups(found: Classification, labels: Mapping[str, str]) -> tuple[MapGroup, ...]:
    """Self-attention of all layers, over the picture; `labels` names "self", "queries" and "keys"."""
    names = token_names(found.grid, found.num_special)
    pixels = np.asarray(found.prepared.seen.convert("RGB"))
    picture = MapPicture(pixels, found.grid, found.num_special)
    sides = labels["self"], labels["queries"], labels["keys"]
    return (MapGroup("encoder-self", *sides, names, names, tuple(found.trace), image=picture, provenance=found.made),)


def open_classification(found: Classification, language: str) -> tuple[tuple[MapGroup, ...], ViewState]:
    """Self-attention over the picture and the head that opens first, named as in the app."""
    groups = picture_groups(found, group_labels("vision-transformer", language))
    return groups, initial_state(groups)


def initial_state(groups: tuple[MapGroup, ...]) -> ViewState:
    """State that opens first: the head with the clearest pattern, as the patch in the middle of the picture sees it."""
    return over_picture(groups[0])


def translation_groups(translation: Translation, labels: Mapping[str, str]) -> tuple[MapGroup, ...]:
    """Encoder self, decoder self and cross maps of every layer, with the tokens of their rows and columns.

    A decoder row is named by the word its step writes. `labels` names "encoder-self", "decoder-self",
    "cross", "english", "french" and "written".
    """
    source = labels["english"], translation.source_tokens, translation.source_words
    target = labels["french"], translation.target_tokens, translation.target_words
    written = labels["written"], translation.decoder_tokens, translation.decoder_words
    sides = {
        "encoder-self": ("encoder", "self", source, source),
        "decoder-self": ("decoder", "self", target, written),
        "cross": ("decoder", "cross", target, source),
    }
    calls = {
        name: tuple(call for call in translation.trace if (call.stack, call.kind) == (stack, kind))
        for name, (stack, kind, *_) in sides.items()
    }
    return tuple(
        MapGroup(
            name,
            labels[name],
            queries,
            keys,
            query_tokens,
            key_tokens,
            calls[name],
            query_words=query_words,
            key_words=key_words,
            alignment_errors=translation.alignment_errors if name == "cross" else (),
            provenance=translation.made,
        )
        for name, (_, _, (queries, query_tokens, query_words), (keys, key_tokens, key_words)) in sides.items()
        if calls[name]  # a recurrent model attends from decoder to encoder alone
    )


def aligning_head(groups: tuple[MapGroup, ...]) -> ViewState:
    """The cross-attention head to open first: the one that aligns the words it writes with the fewest errors.

    Where that was not measured, the one of the last layer whose queries tell most about its keys: earlier layers still
    look at what was written last.
    """
    cross = next(group for group in groups if group.id == "cross")
    if cross.alignment_errors:
        _, layer, head = best_aligner(cross.alignment_errors, "written")
        return ViewState(cross.id, layer, head)
    last = len(cross.calls) - 1
    information = [head["information"] for head in cross.picture(last).fingerprints]
    return ViewState(cross.id, last, information.index(max(information)))


def open_translation(translation: Translation, language: str) -> tuple[tuple[MapGroup, ...], ViewState]:
    """A translation's maps and the head that opens first, named as in the app."""
    groups = translation_groups(translation, group_labels("translation", language))
    if not groups:
        raise ValueError("what: expected attention, got a translation by a model that has none")
    return groups, aligning_head(groups)


def linked_sentences(groups: tuple[MapGroup, ...]) -> dict[str, Any]:
    """Return the words of both sentences, and the weights of the clearest heads within the first and across.

    {lines: [source words, target words], across: {layer, head, pattern, weights: target words by source words},
    within: the same of the source's words among themselves, or null where no head of the encoder has a pattern that
    relates two words}. Layer and head count from 0. A weight between words is exact: what the pieces of a key's word
    get together, mean over the pieces of a query's word.
    """
    cross = next(group for group in groups if group.id == "cross")
    encoder = next(group for group in groups if group.id == "encoder-self")
    opened = aligning_head(groups)
    return {
        "lines": [whole_words(cross.key_tokens, cross.key_words), whole_words(cross.query_tokens, cross.query_words)],
        "across": _head(cross, opened.layer, opened.head),
        "within": _head(encoder, *encoder.clearest) if encoder.clearest else None,
    }


def _head(group: MapGroup, layer: int, head: int) -> dict[str, Any]:
    (weights,) = group.parts([MapRequest(((layer, head),), words=True)])
    if not isinstance(weights, Part):
        raise weights
    return {
        "layer": layer,
        "head": head,
        "pattern": pattern_of(group.picture(layer).fingerprints[head]),
        "weights": [[round(weight, _DECIMALS) for weight in row] for row in weights.array.tolist()],
    }

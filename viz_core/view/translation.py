"""A translation's maps as the groups an attention view shows."""

from collections.abc import Mapping

from viz_core.maps.alignments import best_aligner
from viz_core.pretrained import Translation
from viz_core.view.map_group import MapGroup
from viz_core.view.state import ViewState
from viz_core.view.words import group_labels


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
            errors=translation.alignment_errors if name == "cross" else (),
            made=translation.made,
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
    if cross.errors:
        _, layer, head = best_aligner(cross.errors, "written")
        return ViewState(cross.id, layer, head)
    last = len(cross.calls) - 1
    information = [head["information"] for head in cross.picture(last).fingerprints]
    return ViewState(cross.id, last, information.index(max(information)))


def open_run(translation: Translation, language: str) -> tuple[tuple[MapGroup, ...], ViewState]:
    """A translation's maps and the head that opens first, named as in the app."""
    groups = translation_groups(translation, group_labels("translation", language))
    if not groups:
        raise ValueError("what: expected attention, got a translation by a model that has none")
    return groups, aligning_head(groups)

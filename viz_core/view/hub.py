"""A run of a Hugging Face model as the groups an attention view shows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from viz_core.hub import HubRun, Maps, load_hub
from viz_core.hub.runs.run import name_outside
from viz_core.hub.runs.token_text import token_words
from viz_core.trace import AttentionCall
from viz_core.trace.one_text import OneText
from viz_core.view.components import group_labels
from viz_core.view.grouping import calls_of_a_size, joined_parts, key_names
from viz_core.view.map_group import MapGroup, MapPicture
from viz_core.view.state import ViewState, over_picture

# What the queries and the keys of each kind are, by the names of their labels; of others both are text.
_SIDES = {"decoder-cross": ("written", "source"), "vision-self": ("patches", "patches")}
_SIDES_OF_SOUND = {"encoder-self": ("sound", "sound"), "decoder-cross": ("written", "sound")}


def hub_groups(run: HubRun, labels: Mapping[str, str]) -> tuple[MapGroup, ...]:
    """One group for each kind of maps; silence after a sound is cropped.

    Args:
        labels: names "encoder-self", "decoder-self", "decoder-cross", "vision-self", "text", "patches", "source",
            "written", "read", "text-and-patches", "sound", and "self-part" and "cross-part" with a {share}.
    """
    groups = []
    for maps in run.maps:
        seen = _seen(run, maps)
        rows, columns = _SIDES.get(maps.id, ("text", "text"))
        if run.sound is not None and maps.id in _SIDES_OF_SOUND:
            rows, columns = _SIDES_OF_SOUND[maps.id]
            maps = _within_sound(maps, run.sound.num_keys)
        if maps.id == "decoder-self" and run.decoder_tokens:
            rows, columns = "written", "read"
        if run.grid is not None:
            rows = columns = "patches"
        elif run.patches and maps.frame is None:
            rows = columns = "text-and-patches"
        queries, keys = (tuple(token.label for token in side) for side in (maps.query_tokens, maps.key_tokens))
        for number, calls in enumerate(calls_of_a_size(maps.calls)):  # several where layers compress keys
            joins = getattr(calls[0].source, "joins", False) and calls[0].num_keys == len(keys) + len(run.tokens)
            if joins:
                keys = (*keys, *(token.label for token in run.tokens))
            fits, again = calls[0].num_keys == len(keys), f"-{number + 1}" if number else ""
            groups.append(
                MapGroup(
                    maps.id + again,
                    labels.get(maps.id, calls[0].site) + again.replace("-", " "),
                    labels[rows],
                    labels[columns],
                    queries,
                    keys if fits else key_names(calls[0], queries, beside=None),
                    calls,
                    query_words=None if seen else token_words(maps.query_tokens),
                    key_words=None
                    if seen or len(maps.key_tokens) != calls[0].num_keys
                    else token_words(maps.key_tokens),
                    image=seen,
                    provenance=run.made,
                )
            )
            groups += joined_parts(groups[-1], labels["self-part"], labels["cross-part"], labels["source"])
    return tuple(groups)


def open_run(run: HubRun, language: str) -> tuple[tuple[MapGroup, ...], ViewState]:
    """A run's maps and the head that opens first, named as in the app."""
    groups = hub_groups(run, group_labels("model-lab", language))
    if not groups:
        raise ValueError("what: expected attention, got a run without any")
    return groups, initial_state(groups, run)


def relabelled(run: HubRun, labels: Sequence[object] | Mapping[str, Sequence[object]]) -> HubRun:
    """The run with names of one's own for its tokens; ValueError unless there is one for each."""
    given = labels if isinstance(labels, Mapping) else {"tokens": labels}
    fields = {name: getattr(run, name) for name in ("tokens", "decoder_tokens", "target_tokens")}
    for name, names in given.items():
        if name not in fields:
            raise ValueError(f"labels: expected {', '.join(fields)}, got {name!r}")
        if isinstance(names, str) or len(names) != len(fields[name]):
            raise ValueError(f"labels: expected a sequence of {len(fields[name])} {name}, got {len(names)}")
        fields[name] = tuple(replace(each, label=str(own)) for each, own in zip(fields[name], names, strict=True))
    return replace(run, **fields)


def run_shipped(name: str, text: str, **options: Any) -> HubRun:
    """The run of a text by a model that ships."""
    return load_hub(name, offline=True).run(text, **options)


def initial_state(groups: Sequence[MapGroup], run: HubRun) -> ViewState:
    """What is open at first: the head whose pattern is clearest; of a speech model the first that follows the sound.

    Where no head has a pattern, or maps are too large to be measured for it, the middle layer.
    """
    whole = [group for group in groups if group.rows_sum_to_one]
    of_layers = [group for group in whole if not name_outside(group.calls[0])] or groups
    group = next((group for group in groups if group.id == "decoder-cross"), of_layers[-1])
    if run.sound is not None:
        return ViewState(group.id, *run.sound.aligning[0])
    if group.image is not None:
        return over_picture(group)
    return ViewState(group.id, *(group.clearest or (len(group.calls) // 2, 0)))


def _within_sound(maps: Maps, num_keys: int) -> Maps:
    """The maps without the silence that follows the sound; weights stay normalised over all keys."""
    num_queries = num_keys if maps.id == "encoder-self" else len(maps.query_tokens)
    left = range(num_queries), range(num_keys)
    calls = tuple(AttentionCall(call.site, OneText(call.source, 0, *left)) for call in maps.calls)
    return replace(
        maps, query_tokens=maps.query_tokens[:num_queries], key_tokens=maps.key_tokens[:num_keys], calls=calls
    )


def _seen(run: HubRun, maps: Maps) -> MapPicture | None:
    """The picture whose patches all these tokens are."""
    grid, image = (run.grid, run.image) if maps.frame is None else (maps.frame.grid, maps.frame.image)
    if grid is None or image is None:
        return None
    num_special, of_queries = len(maps.key_tokens) - grid[0] * grid[1], len(maps.query_tokens) == len(maps.key_tokens)
    return MapPicture(np.asarray(image.convert("RGB")), grid, num_special, of_queries)

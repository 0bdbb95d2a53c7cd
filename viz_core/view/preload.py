"""What a browser is sent without a request: what opens quickly, or all that a file holds.

A first answer holds the open group's thumbnails as far as they come quickly, the open layer's first, and as many exact
maps as fit `EXACT_BYTES`: those of the whole group, or of the open layer, or the open head alone. Over a picture, it
holds the picture and what the pinned tokens attend to instead of maps.
"""

from collections.abc import Sequence
from typing import get_args

from viz_core.view.map_group import MapGroup
from viz_core.view.requests import (
    ChangeRequest,
    Combination,
    GroupRequest,
    ImageRequest,
    KeysRequest,
    MapRequest,
    MeasuresRequest,
    PartRequest,
    Pin,
    Request,
    ThumbnailsRequest,
    TokenRequest,
)
from viz_core.view.state import ViewState, open_group

EXACT_BYTES = 128 * 1024
"""So many bytes of exact maps are sent unasked."""

QUICK_WEIGHTS = 2**26
"""Pictures are sent unasked as long as no more weights than this must be computed for them."""

FIRST_WEIGHTS = 2**28
"""The same for the open layer's: a reader would wait for it anyway, and a second question costs time as well."""


def every_request(groups: Sequence[MapGroup], second: Sequence[MapGroup], most_bytes: int) -> list[Request]:
    """List all thumbnails, measures, what a search needs, and as many exact maps as fit: what a file holds."""
    requests: list[Request] = []
    room = most_bytes
    for number, of_input in enumerate((groups, second)):
        for group in of_input:
            layers = range(len(group.calls))
            parts: list[PartRequest] = [ThumbnailsRequest(layer) for layer in layers]
            parts += _over_picture(group, ()) if group.seen else []
            received = 8 * len(group.heads) * len(group.key_tokens)
            if not number and not group.seen and received <= room:
                parts += [KeysRequest(layer) for layer in layers]
                room -= received
            if group.sent_whole:
                parts += _measures(group)
                parts += [ChangeRequest(layer) for layer in layers] if second and not number else []
                size = 4 * len(group.query_tokens) * len(group.key_tokens)
                fitting = group.heads[: max(0, room // max(1, size))]
                parts += [MapRequest((head,)) for head in fitting]
                room -= len(fitting) * size
            requests += [GroupRequest(number, group.id, part) for part in parts]
    return requests


def initial_requests(groups: Sequence[MapGroup], state: ViewState) -> list[Request]:
    """List what is sent unrequested: thumbnails that are quick to compute, and small exact maps."""
    group = open_group(groups, state)
    size = len(group.query_tokens) * len(group.key_tokens)
    parts: list[PartRequest] = []
    room = QUICK_WEIGHTS
    nearest = sorted(range(len(group.calls)), key=lambda layer: abs(layer - state.layer))
    for layer in nearest:  # as the browser asks for them
        needed = 0 if group.has_picture(layer) else size * group.calls[layer].num_heads
        room -= needed
        if room >= 0 or (layer == state.layer and needed <= FIRST_WEIGHTS):
            parts.append(ThumbnailsRequest(layer))
    if state.display.mode == "picture":
        parts += _over_picture(group, state.pins)
    elif group.sent_whole:
        of_layer = [head for head in group.heads if head[0] == state.layer]
        choices = (group.heads, of_layer, [(state.layer, state.head)])
        sent = next((some for some in choices if 4 * size * len(some) <= EXACT_BYTES), choices[-1])
        parts += [MapRequest((head,)) for head in sent]
    return [GroupRequest(0, group.id, part) for part in parts]


def _over_picture(group: MapGroup, pins: Sequence[Pin]) -> list[PartRequest]:
    """The picture, and what these tokens look at in every layer; the first one where none is pinned."""
    layers = range(len(group.calls))
    return [ImageRequest(), *(TokenRequest(layer, token) for token in pins or (Pin("query", 0),) for layer in layers)]


def _measures(group: MapGroup) -> list[MeasuresRequest]:
    """The measures of every layer's heads combined, of all heads combined, and of every head between words."""
    layers = [tuple(head for head in group.heads if head[0] == layer) for layer in range(len(group.calls))]
    units = (False, True) if group.query_words or group.key_words else (False,)
    maps = [
        MapRequest(chosen, how, words)
        for words in units
        for how in get_args(Combination)
        for chosen in dict.fromkeys((*layers, group.heads))
        if len(chosen) > 1
    ]
    if True in units:
        maps += [MapRequest((head,), words=True) for head in group.heads]
    return [MeasuresRequest(wanted) for wanted in maps]

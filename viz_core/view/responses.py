"""What a browser is sent of a view: answers to its requests, and what it gets without a request.

A first answer holds the open group's thumbnails as far as they come quickly, the open layer's first, and as many exact
maps as fit `EXACT_BYTES`: those of the whole group, or of the open layer, or the open head alone. Over a picture, it
holds the picture and what the pinned tokens attend to instead of maps. Tokens of two inputs are matched by edit
distance.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, get_args

import numpy as np
import torch
from jaxtyping import Float

from viz_core.maps.fingerprints import pattern_of
from viz_core.maps.measures import scaled_rows, total_variation
from viz_core.trace.points import SampledPoints
from viz_core.view.map_group import EXACT_BYTES, MapGroup
from viz_core.view.requests import (
    ChangeRequest,
    Combination,
    Found,
    GroupRequest,
    ImageRequest,
    KeysRequest,
    LayerPicture,
    MapRequest,
    MeasuresRequest,
    Part,
    PartRequest,
    Pin,
    PointsRequest,
    ThumbnailsRequest,
    TokenRequest,
    ViewRequest,
    WeightsRequest,
    finite_measures,
)
from viz_core.view.state import ViewState, open_group

Pairs: TypeAlias = Sequence[tuple[int | None, int | None]]

_NONE = "∅"


def match_tokens(first: Sequence[str], second: Sequence[str]) -> Pairs:
    """Pairs (i, j) of a cheapest edit of one list into another by deletions, insertions and replacements.

    None where one of them has none; an item that is kept or replaced comes first (Wagner and Fischer 1974). With
    D_ij the cost of the first i and j items, D_ij = min(D_(i-1)j + 1, D_i(j-1) + 1, D_(i-1)(j-1) + [a_i != b_j]).
    """
    steps = np.arange(len(second) + 1)
    costs = np.zeros((len(first) + 1, len(second) + 1), dtype=np.int64)
    costs[0] = steps
    differs = np.array([[own != other for other in second] for own in first], dtype=np.int64)
    for i in range(1, len(first) + 1):
        reached = costs[i - 1] + 1
        reached[1:] = np.minimum(reached[1:], costs[i - 1, :-1] + differs[i - 1])
        costs[i] = np.minimum.accumulate(reached - steps) + steps  # and by any number of insertions
    pairs: list[tuple[int | None, int | None]] = []
    i, j = len(first), len(second)
    while i or j:
        if i and j and costs[i, j] == costs[i - 1, j - 1] + differs[i - 1, j - 1]:
            i, j = i - 1, j - 1
            pairs.append((i, j))
        elif i and costs[i, j] == costs[i - 1, j] + 1:
            i -= 1
            pairs.append((i, None))
        else:
            j -= 1
            pairs.append((None, j))
    return pairs[::-1]


def joined_names(first: Sequence[str], second: Sequence[str], pairs: Pairs) -> list[str]:
    """ "cat" where both have the same, "cat | dog" where one stands for the other, "∅" for none."""
    named = [(_NONE if i is None else first[i], _NONE if j is None else second[j]) for i, j in pairs]
    return [own if own == other else f"{own} | {other}" for own, other in named]


def subtract_matched(
    first: Float[np.ndarray, "queries keys"], second: Float[np.ndarray, "others them"], rows: Pairs, columns: Pairs
) -> Float[np.ndarray, "rows columns"]:
    """The first map minus the second, over pairs of rows and of columns.

    A key that one text lacks has no weight there; the row of a query that one text lacks is NaN.
    """
    own, other = _aligned(first, second, rows, columns)
    return own - other


def changed_attention(
    first: Float[np.ndarray, "queries keys"], second: Float[np.ndarray, "others them"], rows: Pairs, columns: Pairs
) -> float | None:
    """Mean total variation distance between the rows that both texts have, 0 to 1 (`total_variation`).

    None where they have no row in common.
    """
    shared = [(i, j) for i, j in rows if i is not None and j is not None]
    own, other = _aligned(first, second, shared, columns)
    return float(total_variation(torch.from_numpy(own), torch.from_numpy(other))) if shared else None


def _aligned(
    first: Float[np.ndarray, "queries keys"], second: Float[np.ndarray, "others them"], rows: Pairs, columns: Pairs
) -> tuple[Float[np.ndarray, "rows columns"], Float[np.ndarray, "rows columns"]]:
    """Both maps over the pairs of rows and columns: 0 for a key that one lacks, NaN for a query."""
    padded = [np.pad(weights, ((0, 1), (0, 1))) for weights in (first, second)]
    for weights in padded:
        weights[-1] = np.nan
    own, other = (weights[np.ix_(_places(rows, side), _places(columns, side))] for side, weights in enumerate(padded))
    return own, other


def _places(pairs: Pairs, side: int) -> list[int]:
    """Rows or columns of one map; -1, the padding, for None."""
    return [-1 if (place := pair[side]) is None else place for pair in pairs]


def answer(find: Callable[[int, str], MapGroup | None], requests: Iterable[ViewRequest]) -> dict[ViewRequest, Part]:
    """The requested parts of groups, found by input and id; those that do not exist are left out.

    All requests for weights of a group go to its `MapSource` at once.
    """
    parts: dict[ViewRequest, Found | None] = {}
    weights: dict[tuple[int, str], tuple[MapGroup, list[WeightsRequest]]] = {}
    for request in requests:
        if not isinstance(request, GroupRequest) or (group := find(request.input, request.group)) is None:
            continue
        match request.part:
            case ImageRequest():
                parts[request] = None if group.image is None else Part("bytes", group.image.pixels)
            case ChangeRequest(layer):
                parts[request] = _changes(group, find(1 - request.input, request.group), layer)
            case part:
                weights.setdefault((request.input, request.group), (group, []))[1].append(part)
    for key, (group, wanted) in weights.items():
        found = group.parts(wanted)
        parts |= {GroupRequest(*key, part): one for part, one in zip(wanted, found, strict=True)}
    drawn = {key: _thumbnails(one) if isinstance(one, LayerPicture) else one for key, one in parts.items()}
    return {request: one for request, one in drawn.items() if isinstance(one, Part)}


def _thumbnails(picture: LayerPicture) -> Part:
    about: dict[str, Any] = {
        "measures": [finite_measures(fingerprint) for fingerprint in picture.fingerprints],
        "patterns": [pattern_of(fingerprint) for fingerprint in picture.fingerprints],
    }
    return Part("root", picture.thumbnails.numpy(), about | ({"most": picture.most} if picture.most else {}))


def _changes(group: MapGroup, other: MapGroup | None, layer: int) -> Part | None:
    """Change of each head of a layer between two inputs; None of a head that the other lacks."""
    if other is None or layer >= min(len(group.calls), len(other.calls)):
        return None
    heads = min(each.calls[layer].num_heads for each in (group, other))
    requests = [MapRequest(((layer, head),)) for head in range(heads)]
    rows = match_tokens(group.query_tokens, other.query_tokens)
    columns = match_tokens(group.key_tokens, other.key_tokens)
    changes: list[float | None] = []
    for own, theirs in zip(group.parts(requests), other.parts(requests), strict=True):
        if not isinstance(own, Part) or not isinstance(theirs, Part):
            return None
        maps = ((torch.from_numpy(own.array), group), (torch.from_numpy(theirs.array), other))
        first, second = ((scaled_rows(w) if each.calls[layer].signed else w).numpy() for w, each in maps)
        changes.append(changed_attention(first, second, rows, columns))
    return Part("bytes", np.empty(0, np.uint8), {"changes": changes})


QUICK_WEIGHTS = 2**26
"""Pictures are sent unasked as long as no more weights than this must be computed for them."""

FIRST_WEIGHTS = 2**28
"""The same for the open layer's: a reader would wait for it anyway, and a second question costs time as well."""


def every_request(groups: Sequence[MapGroup], second: Sequence[MapGroup], max_bytes: int) -> list[ViewRequest]:
    """List all thumbnails, measures, what a search needs, and as many exact maps as fit: what a file holds."""
    requests: list[ViewRequest] = []
    room = max_bytes
    for number, of_input in enumerate((groups, second)):
        for group in of_input:
            layers = range(len(group.calls))
            parts: list[PartRequest] = [ThumbnailsRequest(layer) for layer in layers]
            pins = [Pin("query", i) for i in range(_num_sent(group, room))]
            parts += _over_picture(group, pins) if group.image else []
            room -= _point_bytes(group) * len(pins)
            received = 8 * len(group.heads) * len(group.key_tokens)
            if not number and not group.image and received <= room:
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


def initial_requests(groups: Sequence[MapGroup], state: ViewState) -> list[ViewRequest]:
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


def _point_bytes(group: MapGroup) -> int:
    """Return the bytes of the points of a query, and of its weights, in all layers; 0 without points."""
    if not (group.image and group.image.levels):
        return 0
    points = sum(sum(call.source.counts) for call in group.calls if isinstance(call.source, SampledPoints))
    return 4 * group.calls[0].num_heads * (4 * points + len(group.key_tokens) * len(group.calls))


def _num_sent(group: MapGroup, room: int) -> int:
    """Return of how many queries a file holds points: the first ones."""
    each = _point_bytes(group)
    return min(len(group.query_tokens), room // each) if each else 0


def _over_picture(group: MapGroup, pins: Sequence[Pin]) -> list[PartRequest]:
    """The picture, and what these tokens look at in every layer; the first one where none is pinned."""
    kinds = (TokenRequest, PointsRequest) if group.image and group.image.levels else (TokenRequest,)
    if group.image and not group.image.of_queries:
        pins = [pin for pin in pins if pin.axis == "query"]
    parts: list[PartRequest] = [ImageRequest()]
    for token, layer in itertools.product(pins or (Pin("query", 0),), range(len(group.calls))):
        parts += [kind(layer, token) for kind in kinds]
    return parts


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

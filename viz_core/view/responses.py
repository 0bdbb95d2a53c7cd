"""Answers to the requests that a browser makes of a view."""

from collections.abc import Callable, Iterable

import numpy as np
import torch

from viz_core.maps.measures import scaled_rows
from viz_core.view.map_group import MapGroup
from viz_core.view.map_source import LayerPicture, Part, PartError, finite_measures
from viz_core.view.requests import (
    ChangeRequest,
    GroupRequest,
    ImageRequest,
    MapRequest,
    Request,
    ThumbnailsRequest,
    WeightsRequest,
)
from viz_core.view.token_alignment import changed_attention, match_tokens


def answer(find: Callable[[int, str], MapGroup | None], requests: Iterable[Request]) -> dict[Request, Part]:
    """The requested parts of groups, found by input and id; those that do not exist are left out.

    All requests for weights of a group go to its `MapSource` at once.
    """
    parts: dict[Request, Part | PartError | None] = {}
    weights: dict[tuple[int, str], tuple[MapGroup, list[WeightsRequest]]] = {}
    for request in requests:
        if not isinstance(request, GroupRequest) or (group := find(request.input, request.group)) is None:
            continue
        match request.part:
            case ImageRequest():
                parts[request] = None if group.seen is None else Part("bytes", group.seen.pixels)
            case ThumbnailsRequest(layer):
                parts[request] = _thumbnails(group.picture(layer)) if layer < len(group.calls) else None
            case ChangeRequest(layer):
                parts[request] = _changes(group, find(1 - request.input, request.group), layer)
            case part:
                weights.setdefault((request.input, request.group), (group, []))[1].append(part)
    for key, (group, wanted) in weights.items():
        found = group.maps.parts(wanted)
        parts |= {GroupRequest(*key, part): one for part, one in zip(wanted, found, strict=True)}
    return {request: one for request, one in parts.items() if isinstance(one, Part)}


def _thumbnails(picture: LayerPicture) -> Part:
    measures = [finite_measures(fingerprint) for fingerprint in picture.fingerprints]
    most = {"most": picture.most} if picture.most else {}
    return Part("root", picture.thumbnails.numpy(), {"measures": measures} | most)


def _changes(group: MapGroup, other: MapGroup | None, layer: int) -> Part | None:
    """Change of each head of a layer between two inputs; None of a head that the other lacks."""
    if other is None or layer >= min(len(group.calls), len(other.calls)):
        return None
    heads = min(each.calls[layer].num_heads for each in (group, other))
    requests = [MapRequest(((layer, head),)) for head in range(heads)]
    rows = match_tokens(group.query_tokens, other.query_tokens)
    columns = match_tokens(group.key_tokens, other.key_tokens)
    changes: list[float | None] = []
    for own, theirs in zip(group.maps.parts(requests), other.maps.parts(requests), strict=True):
        if not isinstance(own, Part) or not isinstance(theirs, Part):
            return None
        maps = ((torch.from_numpy(own.array), group), (torch.from_numpy(theirs.array), other))
        first, second = ((scaled_rows(w) if each.calls[layer].signed else w).numpy() for w, each in maps)
        changes.append(changed_attention(first, second, rows, columns))
    return Part("bytes", np.empty(0, np.uint8), {"changes": changes})

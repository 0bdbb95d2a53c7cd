"""What a browser asks of a view, answered: each question by whom it concerns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict

from viz_core.view.map_group import MapGroup
from viz_core.view.map_source import LayerPicture, Part, PartError
from viz_core.view.requests import GroupRequest, ImageRequest, PictureRequest, Request, WeightsRequest


def answer(find: Callable[[int, str], MapGroup | None], requests: Iterable[Request]) -> dict[Request, Part]:
    """The parts asked for; those that cannot be had are left out.

    Args:
        find: the group of an input and an id.
        requests: what of a group's weights is wanted is asked of its `MapSource` at once.
    """
    found: dict[Request, Part | PartError] = {}
    weights: dict[tuple[int, str], tuple[MapGroup, list[WeightsRequest]]] = {}
    for request in requests:
        if not isinstance(request, GroupRequest):
            continue
        place, part = (request.input, request.group), request.part
        group = find(*place)
        if group is None:
            continue
        if isinstance(part, ImageRequest):
            if group.seen is not None:
                found[request] = Part("bytes", group.seen.pixels)
        elif isinstance(part, PictureRequest):
            if part.layer < len(group.calls):
                found[request] = _picture(group.picture(part.layer))
        else:
            weights.setdefault(place, (group, []))[1].append(part)
    for place, (group, parts) in weights.items():
        made = group.maps.parts(parts)
        found |= {GroupRequest(*place, part): one for part, one in zip(parts, made, strict=True)}
    return {request: one for request, one in found.items() if isinstance(one, Part)}


def _picture(picture: LayerPicture) -> Part:
    measures = [{name: _finite(value) for name, value in asdict(one).items()} for one in picture.fingerprints]
    return Part("root", picture.thumbnails.numpy(), {"measures": measures})


def _finite(value: float | None) -> float | None:
    """JSON has no NaN; a model that has blown up still shows its maps."""
    return None if value is None or not math.isfinite(value) else round(value, 6)

"""Parts of an attention view by the names under which a browser asks for them (`attention_payload` lists them)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from torch import Tensor

from viz_core.view.map_group import MapGroup, in_bytes
from viz_core.view.map_part import TILE, MapName, map_part, map_size, read_map_name, whole_map

EXACT_TOKENS = 512
"""With more tokens than this on a side, a map is sent in tiles."""

_NAMED = re.compile(r"(?P<kind>[a-z]+) (?P<input>[01])[ .](?P<group>[a-z0-9_-]{1,32})")
_PICTURE = re.compile(r"picture ([01]) ([a-z0-9_-]{1,32}) ([0-9]{1,4})")
_IMAGE = re.compile(r"image ([01]) ([a-z0-9_-]{1,32})")
_TOKEN = re.compile(r"token ([01]) ([a-z0-9_-]{1,32}) ([0-9]{1,4}) ([qk])([0-9]{1,6})")
_TILE = re.compile(r"tile (\S{1,2100}) ([0-9]{1,2}) ([0-9]{1,2}) ([0-9]{1,6}) ([0-9]{1,6})")


Strips = dict[tuple[str, int, int, int], Tensor]
"""Rows of tiles: map, levels down and across, and which row."""


class PartError(ValueError):
    """There is no such part."""


@dataclass(frozen=True)
class Part:
    """An answer: its kind ("exact", "root" or "bytes"), its numbers, and what else the header says of it."""

    kind: str
    array: np.ndarray
    notes: dict[str, Any] = field(default_factory=dict)


def exact_is_whole(group: MapGroup) -> bool:
    """Whether this group's maps are sent whole, not in tiles."""
    return max(len(group.query_tokens), len(group.key_tokens)) <= EXACT_TOKENS


def answer(
    find: Callable[[int, str], MapGroup | None],
    name: str,
    strips: dict[tuple[str, int, int, int], Tensor] | None = None,
) -> Part:
    """The part of this name.

    Args:
        find: the group of an input and an id.
        strips: what tiles side by side have in common, kept here from one part of an answer to the next.

    Raises:
        PartError: if the name is malformed or asks for what is not there.
    """
    if found := _NAMED.match(name):
        group = find(int(found["input"]), found["group"])
        if group is not None and group.elsewhere is not None and found["kind"] in ("map", "tile", "token"):
            there: Part = group.elsewhere.part(f"{found['kind']} 0{name[found.end('input') :]}")
            return there
    if found := _PICTURE.fullmatch(name):
        return _picture(find(int(found[1]), found[2]), int(found[3]))
    if found := _IMAGE.fullmatch(name):
        return _image(find(int(found[1]), found[2]))
    if found := _TOKEN.fullmatch(name):
        return _token(find(int(found[1]), found[2]), int(found[3]), found[4], int(found[5]))
    if found := _TILE.fullmatch(name):
        return _tile(find, {} if strips is None else strips, found[1], *(int(number) for number in found.groups()[1:]))
    if name.startswith("map "):
        return _map(find, name.removeprefix("map "))
    raise PartError(f"name: expected a picture, image, token, map or tile, got {name[:80]!r}")


def _picture(group: MapGroup | None, layer: int) -> Part:
    if group is None or layer >= len(group.calls):
        raise PartError(f"picture: expected a layer of a group there is, got {layer}")
    picture = group.picture(layer)
    measures = [{name: _finite(value) for name, value in asdict(one).items()} for one in picture.fingerprints]
    return Part("root", picture.thumbnails.numpy(), {"measures": measures})


def _image(group: MapGroup | None) -> Part:
    if group is None or group.seen is None:
        raise PartError("image: expected a group with a picture")
    return Part("bytes", group.seen.pixels)


def _token(group: MapGroup | None, layer: int, axis: str, index: int) -> Part:
    tokens = () if group is None else group.query_tokens if axis == "q" else group.key_tokens
    if group is None or layer >= len(group.calls) or index >= len(tokens):
        raise PartError(f"token: expected a layer and token of a group there is, got {layer} {axis}{index}")
    one, call = slice(index, index + 1), group.calls[layer]
    weights = call.weights(queries=one) if axis == "q" else call.weights(keys=one)
    return Part("exact", weights[group.row].flatten(start_dim=1).numpy().astype("<f4", copy=False))


def _map(find: Callable[[int, str], MapGroup | None], text: str) -> Part:
    name, group = _named(find, text)
    if not exact_is_whole(group):
        raise PartError(f"map: expected one with at most {EXACT_TOKENS} tokens on a side, got {text[:80]!r}")
    try:
        return Part("exact", whole_map(group, name).numpy().astype("<f4", copy=False))
    except ValueError as error:
        raise PartError(str(error)) from error


def _tile(
    find: Callable[[int, str], MapGroup | None],
    strips: Strips,
    text: str,
    down: int,
    across: int,
    i: int,
    j: int,
) -> Part:
    name, group = _named(find, text)
    size = map_size(group, name.words)
    for level, at, tokens in ((down, i, size[0]), (across, j, size[1])):
        if level > math.ceil(math.log2(max(2, tokens))) or at * TILE << level >= tokens:
            raise PartError(f"tile: expected one of a map of {size[0]} x {size[1]}, got {down} {across} {i} {j}")
    key = (text, down, across, i)
    if key not in strips:  # a row's weights need all keys anyway, so its tiles cost no more than one of them
        start = i * TILE << down
        rows = range(start, min(start + (TILE << down), size[0]))
        try:
            strips[key] = map_part(group, name, rows, range(size[1]), (1 << down, 1 << across))
        except ValueError as error:
            raise PartError(str(error)) from error
    cells = strips[key][:, j * TILE : (j + 1) * TILE]
    if down == across == 0:
        return Part("exact", cells.numpy().astype("<f4", copy=False))
    return Part("root", in_bytes(cells).numpy())


def _named(find: Callable[[int, str], MapGroup | None], text: str) -> tuple[MapName, MapGroup]:
    """The name and the group it speaks of."""
    name = read_map_name(text)
    group = None if name is None else find(name.input, name.group)
    if name is None or group is None:
        raise PartError(f"name: expected a map of a group there is, got {text[:80]!r}")
    return name, group


def _finite(value: float | None) -> float | None:
    """JSON has no NaN; a model that has blown up still shows its maps."""
    return None if value is None or not math.isfinite(value) else round(value, 6)

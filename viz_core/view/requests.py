"""Requests that a browser makes of an attention view, parsed from text, and the source of maps that answers them.

Each request has one spelling, which names it in the answer:

    picture INPUT GROUP LAYER                  thumbnails and measures of a layer's heads
    change INPUT GROUP LAYER                   how much each of its heads differs between the two inputs
    image INPUT GROUP                          the picture whose patches are the tokens
    token INPUT GROUP LAYER q5                 what query 5 looks at in every head ("k5": who at key 5)
    points INPUT GROUP LAYER q5                where query 5 reads feature maps in every head, and with which weights
    keys INPUT GROUP LAYER                     the mean weight on each key, and the query that gives it most
    map INPUT.GROUP:2.5_2.6:mean:tokens        a whole map: of heads 5 and 6 of layer 2, their mean, between tokens
    measures INPUT.GROUP:2.5_2.6:mean:words    measures of such a map
    tile INPUT.GROUP:2.5:mean:words R C I J    cells of 2^R x 2^C of it: rows from I, columns from J times TILE cells
    rows INPUT.GROUP:2.5:mean:words I N J M    exact: N rows from I on, M columns from J on, for a file
    page                                       the view as an HTML file
    notebook                                   the same as a notebook that makes it again
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from viz_core.maps.fingerprints import Fingerprint

Axis = Literal["query", "key"]


@dataclass(frozen=True)
class Pin:
    """A pinned token: a query (its row is read) or a key (its column is read)."""

    axis: Axis
    index: int

    def __str__(self) -> str:
        """ "q10" or "k3", as it stands in a link."""
        return f"{self.axis[0]}{self.index}"


def read_pins(text: str) -> tuple[Pin, ...] | None:
    """ "q10.q11" as pins; None where it is not a pin."""
    if not re.fullmatch(r"[qk][0-9]{1,6}(?:\.[qk][0-9]{1,6})*", text):
        return None
    pins = (Pin("query" if pin[0] == "q" else "key", int(pin[1:])) for pin in text.split("."))
    return tuple(dict.fromkeys(pins))


Combination = Literal["mean", "max"]
"""How several heads are combined into one map (`combine_heads`)."""


@dataclass(frozen=True)
class ThumbnailsRequest:
    """A layer as the grid shows it: thumbnails and measures of its heads."""

    layer: int


@dataclass(frozen=True)
class ChangeRequest:
    """How much each head of a layer differs between the two inputs (`changed_attention`)."""

    layer: int


@dataclass(frozen=True)
class ImageRequest:
    """The picture whose patches are the tokens."""


@dataclass(frozen=True)
class TokenRequest:
    """What a query looks at, or who looks at a key, in every head of a layer."""

    layer: int
    token: Pin


@dataclass(frozen=True)
class PointsRequest:
    """Where a query reads feature maps, in every head of a layer (`SampledPoints.read_by`)."""

    layer: int
    token: Pin


@dataclass(frozen=True)
class KeysRequest:
    """The weight on every key in every head of a layer, and the query that gives it most: what a search needs."""

    layer: int


@dataclass(frozen=True)
class MapRequest:
    """A whole map: of which heads (layer and head from 0), how they are combined, between tokens or words."""

    heads: tuple[tuple[int, int], ...]
    how: Combination = "mean"
    words: bool = False

    def __str__(self) -> str:
        heads = "_".join(f"{layer}.{head}" for layer, head in self.heads)
        return f"{heads}:{self.how}:{'words' if self.words else 'tokens'}"


@dataclass(frozen=True)
class MeasuresRequest:
    """The measures of a map (`viz_core.maps.register`)."""

    map: MapRequest


@dataclass(frozen=True)
class TileRequest:
    """A part of a map: cells of 2^down x 2^across, those from `row` and `column` times TILE on."""

    map: MapRequest
    down: int
    across: int
    row: int
    column: int


@dataclass(frozen=True)
class RowsRequest:
    """An exact part of a map of any size: `height` rows from `row` on, and `width` columns from `column` on."""

    map: MapRequest
    row: int
    height: int
    column: int
    width: int


WeightsRequest = (
    ThumbnailsRequest
    | TokenRequest
    | PointsRequest
    | KeysRequest
    | MapRequest
    | MeasuresRequest
    | TileRequest
    | RowsRequest
)
"""Requests that need the recorded queries and keys."""

PartRequest = ChangeRequest | ImageRequest | WeightsRequest


@dataclass(frozen=True)
class GroupRequest:
    """A request, and the input and group it is about."""

    input: int
    group: str
    part: PartRequest

    def __str__(self) -> str:
        part = self.part
        kind = next(kind for kind, made in _KINDS.items() if made is type(part))
        if isinstance(part, MapRequest):
            return f"{kind} {self.input}.{self.group}:{part}"
        numbers = [str(getattr(part, each.name)) for each in fields(part) if each.name != "map"]
        place = f"{self.input}.{self.group}:{part.map}" if hasattr(part, "map") else f"{self.input} {self.group}"
        return " ".join([kind, place, *numbers])


FileKind = Literal["page", "notebook"]


@dataclass(frozen=True)
class FileRequest:
    """The view as bytes that Python writes: an HTML page, or a notebook that makes it again."""

    kind: FileKind

    def __str__(self) -> str:
        return self.kind


@dataclass(frozen=True)
class UnknownRequest:
    """What nobody can answer: the answer says that it is missing."""

    text: str

    def __str__(self) -> str:
        return self.text


FILES: dict[str, FileRequest] = {kind: FileRequest(kind) for kind in get_args(FileKind)}

ViewRequest = GroupRequest | FileRequest | UnknownRequest

_KINDS: dict[str, type[Any]] = {
    "picture": ThumbnailsRequest,
    "change": ChangeRequest,
    "image": ImageRequest,
    "token": TokenRequest,
    "points": PointsRequest,
    "keys": KeysRequest,
    "map": MapRequest,
    "measures": MeasuresRequest,
    "tile": TileRequest,
    "rows": RowsRequest,
}
_PLACE = r"([01])[ .]([a-z0-9_-]{1,32})"
_MAP = r":([0-9]{1,4}\.[0-9]{1,4}(?:_[0-9]{1,4}\.[0-9]{1,4}){0,511}):(mean|max):(tokens|words)"
_FORM = re.compile(rf"([a-z]+) {_PLACE}(?:{_MAP})?((?: [qk]?[0-9]{{1,6}})*)")


def read_request(text: str) -> ViewRequest:
    """What the browser asks for; `UnknownRequest` where it is not a request, or not spelt as above."""
    if text in FILES:
        return FILES[text]
    found = _FORM.fullmatch(text)
    if found is None or found[1] not in _KINDS:
        return UnknownRequest(text)
    made, given = _KINDS[found[1]], found[7].split()
    names = ["map"] if made is MapRequest else [each.name for each in fields(made)]
    expected = [name for name in names if name != "map"]
    if ("map" in names) != bool(found[4]) or [each[0] in "qk" for each in given] != [n == "token" for n in expected]:
        return UnknownRequest(text)
    numbers = (int(each) if each.isdecimal() else (read_pins(each) or ())[0] for each in given)
    arguments: dict[str, Any] = dict(zip(expected, numbers, strict=True))
    if found[4]:
        heads = tuple((int(layer), int(head)) for layer, head in re.findall(r"(\d+)\.(\d+)", found[4]))
        arguments["map"] = MapRequest(heads, "max" if found[5] == "max" else "mean", found[6] == "words")
    part = arguments["map"] if made is MapRequest else made(**arguments)
    request = GroupRequest(int(found[2]), found[3], part)
    return request if str(request) == text else UnknownRequest(text)


def wanted(message: object) -> list[ViewRequest]:
    """What a message of the browser asks for: {..., "wants": [text, ...]}."""
    wants = message.get("wants") if isinstance(message, Mapping) else None
    return [read_request(want) for want in wants if isinstance(want, str)] if isinstance(wants, list) else []


class PartError(ValueError):
    """There is no such part."""


@dataclass(frozen=True)
class Part:
    """An answer: its kind ("exact", "root" or "bytes"), its numbers, and what else the header says of it."""

    kind: Literal["exact", "root", "bytes"]
    array: np.ndarray
    notes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class LayerPicture:
    """What the grid shows of one layer: a thumbnail and the measures of each head."""

    # weights in 8 bits (`in_bytes`), max-pooled as in `AttentionCall.overview`
    thumbnails: UInt8[Tensor, "heads rows columns"]
    fingerprints: tuple[Fingerprint, ...]  # one for each head
    row_error: float  # by how much any row of any head misses a sum of 1; whoever draws the maps has read them all
    most: float = 0.0  # the size of the largest weight of signed maps (`in_signed_bytes`); 0 for others


Found = Part | LayerPicture | PartError
"""The answer to a `WeightsRequest`: a `LayerPicture` for thumbnails, or what is wrong with the request."""


@runtime_checkable
class MapSource(Protocol):
    """Answers for the maps of one group, wherever its queries and keys lie."""

    def parts(self, requests: Sequence[WeightsRequest]) -> list[Found]:
        """What all these ask for; where one cannot be had, what is wrong with it."""


def finite_measures(fingerprint: Fingerprint) -> dict[str, float | None]:
    """The measures rounded for JSON, which has no NaN: None where a model's numbers have overflowed."""
    return {name: round(value, 6) if math.isfinite(value) else None for name, value in fingerprint.items()}


def in_bytes(weights: Tensor) -> Tensor:
    """Weights in 8 bits: round(255 sqrt(w)). The root keeps small weights apart, which long maps are made of."""
    return (weights.nan_to_num(0.0).clamp(0, 1).sqrt() * 255).round().to(torch.uint8)


def in_signed_bytes(weights: Tensor) -> tuple[Tensor, float]:
    """Weights of both signs in 8 bits, 128 + round(127 sign(w) sqrt(|w| / m)), and m, the largest |w|."""
    weights = weights.nan_to_num(0.0)
    most = float(weights.abs().amax()) or 1.0
    return (128 + (weights.sign() * (weights.abs() / most).sqrt() * 127).round()).to(torch.uint8), most

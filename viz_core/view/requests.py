"""Requests that a browser makes of an attention view, parsed from text.

Each request has one spelling, which names it in the answer:

    picture INPUT GROUP LAYER                  thumbnails and measures of a layer's heads
    change INPUT GROUP LAYER                   how much each of its heads differs between the two inputs
    image INPUT GROUP                          the picture whose patches are the tokens
    token INPUT GROUP LAYER q5                 what query 5 looks at in every head ("k5": who at key 5)
    map INPUT.GROUP:2.5_2.6:mean:tokens        a whole map: of heads 5 and 6 of layer 2, their mean, between tokens
    measures INPUT.GROUP:2.5_2.6:mean:words    measures of such a map
    tile INPUT.GROUP:2.5:mean:words R C I J    cells of 2^R x 2^C of it: rows from I, columns from J times TILE cells
    rows INPUT.GROUP:2.5:mean:words I N J M    exact: N rows from I on, M columns from J on, for a file
    page                                       the view as an HTML file
    notebook                                   the same as a notebook that makes it again
    flipbook                                   the view at every stop of the slider it goes along with
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from viz_core.view.pins import Pin, read_pins

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
class MapRequest:
    """A whole map: of which heads (layer and head from 0), how they are combined, between tokens or words."""

    heads: tuple[tuple[int, int], ...]
    how: Combination = "mean"
    words: bool = False


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


WeightsRequest = TokenRequest | MapRequest | MeasuresRequest | TileRequest | RowsRequest
"""Requests that need the recorded queries and keys."""

LayerRequest = ThumbnailsRequest | ChangeRequest
"""Requests about all heads of a layer."""


@dataclass(frozen=True)
class GroupRequest:
    """A request, and the input and group it is about."""

    input: int
    group: str
    part: LayerRequest | ImageRequest | WeightsRequest

    def __str__(self) -> str:
        match self.part:
            case ThumbnailsRequest(layer):
                return f"picture {self.input} {self.group} {layer}"
            case ChangeRequest(layer):
                return f"change {self.input} {self.group} {layer}"
            case ImageRequest():
                return f"image {self.input} {self.group}"
            case TokenRequest(layer, token):
                return f"token {self.input} {self.group} {layer} {token}"
            case MapRequest():
                return f"map {self._written(self.part)}"
            case MeasuresRequest(of):
                return f"measures {self._written(of)}"
            case TileRequest(of, down, across, row, column):
                return f"tile {self._written(of)} {down} {across} {row} {column}"
            case RowsRequest(of, row, height, column, width):
                return f"rows {self._written(of)} {row} {height} {column} {width}"

    def _written(self, wanted: MapRequest) -> str:
        heads = "_".join(f"{layer}.{head}" for layer, head in wanted.heads)
        return f"{self.input}.{self.group}:{heads}:{wanted.how}:{'words' if wanted.words else 'tokens'}"


FileKind = Literal["page", "notebook", "flipbook"]


@dataclass(frozen=True)
class FileRequest:
    """The view as bytes that Python writes: an HTML page, a notebook that makes it again, or a flip book."""

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

Request = GroupRequest | FileRequest | UnknownRequest

_PLACE = r"(?P<input>[01])[ .](?P<group>[a-z0-9_-]{1,32})"
_MAP = r":(?P<heads>[0-9]{1,4}\.[0-9]{1,4}(?:_[0-9]{1,4}\.[0-9]{1,4}){0,511}):(?P<how>mean|max):(?P<unit>tokens|words)"
_FORMS = {
    "picture": rf"{_PLACE} (?P<layer>[0-9]{{1,4}})",
    "change": rf"{_PLACE} (?P<layer>[0-9]{{1,4}})",
    "image": _PLACE,
    "token": rf"{_PLACE} (?P<layer>[0-9]{{1,4}}) (?P<token>[qk][0-9]{{1,6}})",
    "map": rf"{_PLACE}{_MAP}",
    "measures": rf"{_PLACE}{_MAP}",
    "tile": rf"{_PLACE}{_MAP} (?P<down>[0-9]{{1,2}}) (?P<across>[0-9]{{1,2}})"
    r" (?P<row>[0-9]{1,6}) (?P<column>[0-9]{1,6})",
    "rows": rf"{_PLACE}{_MAP} (?P<row>[0-9]{{1,6}}) (?P<height>[0-9]{{1,6}})"
    r" (?P<column>[0-9]{1,6}) (?P<width>[0-9]{1,6})",
}


def read_request(text: str) -> Request:
    """What the browser asks for; `UnknownRequest` where it is no request, or not spelt as above."""
    if text in FILES:
        return FILES[text]
    kind, _, rest = text.partition(" ")
    found = re.fullmatch(_FORMS[kind], rest) if kind in _FORMS else None
    if found is None:
        return UnknownRequest(text)
    request = GroupRequest(int(found["input"]), found["group"], _part(kind, found))
    return request if str(request) == text else UnknownRequest(text)


def wanted(message: object) -> list[Request]:
    """What a message of the browser asks for: {..., "wants": [text, ...]}."""
    wants = message.get("wants") if isinstance(message, Mapping) else None
    return [read_request(want) for want in wants if isinstance(want, str)] if isinstance(wants, list) else []


def _part(kind: str, found: re.Match[str]) -> LayerRequest | ImageRequest | WeightsRequest:
    match kind:
        case "picture":
            return ThumbnailsRequest(int(found["layer"]))
        case "change":
            return ChangeRequest(int(found["layer"]))
        case "image":
            return ImageRequest()
        case "token":
            (token,) = read_pins(found["token"]) or ()
            return TokenRequest(int(found["layer"]), token)
        case "measures":
            return MeasuresRequest(_map(found))
        case "tile":
            places = (int(found[name]) for name in ("down", "across", "row", "column"))
            return TileRequest(_map(found), *places)
        case "rows":
            places = (int(found[name]) for name in ("row", "height", "column", "width"))
            return RowsRequest(_map(found), *places)
        case _:
            return _map(found)


def _map(found: re.Match[str]) -> MapRequest:
    heads = tuple((int(layer), int(head)) for layer, head in re.findall(r"(\d+)\.(\d+)", found["heads"]))
    return MapRequest(heads, "max" if found["how"] == "max" else "mean", found["unit"] == "words")

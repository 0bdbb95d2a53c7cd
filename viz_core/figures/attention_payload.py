"""An attention view as one run of bytes: what the browser draws, and nothing it need not have.

    4 bytes    length of the header, little-endian
    header     JSON, padded with spaces so that what follows starts at a multiple of 4
    sections   thumbnails (uint8) and exact maps (float32, little-endian), each at a multiple of 4

The header names every section by its offset from the first one:

    version    1
    language   BCP 47 tag; decides how numbers are written
    words      every word on the screen, by the names in `WORD_NAMES`
    turn       how many of the reader's moves are in `view` (see `encode_view`)
    view       {group, layer, head, pin: {axis, index} or null}
    scale      "sqrt": colour shows the square root of the weight
    groups     [{id, label, queries_label, keys_label, query_tokens, key_tokens, overview, layers}]
               overview: true where a side is too long for exact maps of whole heads
               layers: [{number, heads, thumbnails: {offset, rows, columns}, stats: [{entropy, diagonal}]}],
               one thumbnail after the other, one entry of stats a head
    maps       [{group, layer, head, offset, rows, columns}]: heads whose exact weights are here
    tiles      []: room for exact parts of long maps
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from viz_core.figures.framing import Sections, frame, unframe
from viz_core.figures.map_group import LayerPicture, MapGroup
from viz_core.figures.view_state import Pin, ViewState

__all__ = ["EXACT_BYTES", "EXACT_TOKENS", "WORD_NAMES", "MapGroup", "Pin", "ViewState", "decode_view", "encode_view"]

VERSION = 1

EXACT_TOKENS = 512
"""With more tokens than this on a side, a head is shown as an overview."""

EXACT_BYTES = 256 * 1024
"""All heads of the open group are sent exactly if together they are no larger; else only the open one."""

WORD_NAMES = (
    "heads",  # what the grid is
    "head_short",  # {head}
    "layer_short",  # {layer}
    "head_name",  # {layer} {head}
    "entropy",  # {value}
    "heads_hint",
    "map_label",  # {name} {queries} {keys}, and which keys do what
    "queries",  # {label}
    "keys",  # {label}
    "weight",
    "pair",  # {query} {key}
    "looks_at",  # {query} {key} {value}
    "looks_most_at",  # {query} {key} {value}
    "looked_at_most_by",  # {query} {key} {value}
    "looks_at_nothing",  # {query}
    "looked_at_by_none",  # {key}
    "about",  # {value}, known to 8 bits
    "at_most",  # {value}, the largest of several
    "span",  # {first} {last}
    "announcement",  # {name} {text}
    "sentence_title",
    "sentence_hint",
    "pinned",  # {token}
    "waiting",
    "overview",
)
"""The words a view needs, each a template with these {placeholders}."""


@dataclass(frozen=True)
class DecodedView:
    """A view's bytes read back.

    Attributes:
        header: as described above.
        thumbnails: by (group id, layer).
        maps: exact weights by (group id, layer, head).
    """

    header: dict[str, Any]
    thumbnails: dict[tuple[str, int], UInt8[Tensor, "heads rows columns"]]
    maps: dict[tuple[str, int, int], Float[Tensor, "queries keys"]]


def encode_view(
    groups: Sequence[MapGroup],
    view: ViewState,
    words: Mapping[str, str],
    *,
    turn: int = 0,
    language: str = "en",
) -> bytes:
    """Thumbnails of every head of every group, and the exact weights that are worth sending now.

    Args:
        groups: the kinds of maps, in the order of their tabs.
        view: the head to open; its exact map is always there, unless a side is longer than
            `EXACT_TOKENS`.
        words: every word of `WORD_NAMES`.
        turn: how many moves of the reader `view` takes account of: a browser that has moved on
            since keeps its own state and takes only the numbers.
        language: of the words, as a BCP 47 tag.

    Raises:
        ValueError: if the groups lack the open head, two of them share an id, or a word is missing.
    """
    ids = [group.id for group in groups]
    if len(set(ids)) != len(ids):
        raise ValueError(f"groups: expected one of each id, got {', '.join(ids)}")
    if not view.fits(groups):
        raise ValueError(f"view: expected a head and a token of the groups {', '.join(ids) or '(none)'}, got {view}")
    missing = [name for name in WORD_NAMES if name not in words]
    if missing:
        raise ValueError(f"words: expected all of WORD_NAMES, got none for {', '.join(missing)}")

    sections = Sections()
    header = {
        "version": VERSION,
        "language": language,
        "words": {name: words[name] for name in WORD_NAMES},
        "turn": turn,
        "view": asdict(view),
        "scale": "sqrt",
        "groups": [_describe(group, sections) for group in groups],
        "maps": _exact_maps(next(group for group in groups if group.id == view.group), view, sections),
        "tiles": [],
    }
    return frame(header, sections)


def decode_view(data: bytes) -> DecodedView:
    """Read the bytes of `encode_view` back.

    Raises:
        ValueError: if the bytes are cut short or of another version.
    """
    header, start = unframe(data)
    if header.get("version") != VERSION:
        raise ValueError(f"version: expected {VERSION}, got {header.get('version')}")

    def section(place: dict[str, Any], dtype: str, *shape: int) -> Tensor:
        values = np.frombuffer(data, dtype, count=math.prod(shape), offset=start + place["offset"])
        return torch.from_numpy(values.reshape(shape).copy())

    thumbnails = {}
    for group in header["groups"]:
        for index, layer in enumerate(group["layers"]):
            place = layer["thumbnails"]
            shape = layer["heads"], place["rows"], place["columns"]
            thumbnails[group["id"], index] = section(place, "u1", *shape)
    maps = {
        (place["group"], place["layer"], place["head"]): section(place, "<f4", place["rows"], place["columns"])
        for place in header["maps"]
    }
    return DecodedView(header, thumbnails, maps)


def _add(sections: Sections, array: Tensor, dtype: str) -> dict[str, int]:
    """Append an array; where it lies and how large one picture of it is."""
    offset = sections.add(array.numpy().astype(dtype, copy=False))
    return {"offset": offset, "rows": array.shape[-2], "columns": array.shape[-1]}


def _describe(group: MapGroup, sections: Sections) -> dict[str, Any]:
    layers = [
        {
            "number": call.layer + 1,
            "heads": call.num_heads,
            "thumbnails": _add(sections, picture.thumbnails, "u1"),
            "stats": _stats(picture),
        }
        for call, picture in zip(group.calls, group.pictures, strict=True)
    ]
    return {
        "id": group.id,
        "label": group.label,
        "queries_label": group.queries_label,
        "keys_label": group.keys_label,
        "query_tokens": group.query_tokens,
        "key_tokens": group.key_tokens,
        "overview": _is_long(group),
        "layers": layers,
    }


def _stats(picture: LayerPicture) -> list[dict[str, float | None]]:
    diagonals = picture.diagonal or (None,) * len(picture.entropy)
    return [
        {"entropy": _finite(entropy), "diagonal": _finite(diagonal)}
        for entropy, diagonal in zip(picture.entropy, diagonals, strict=True)
    ]


def _exact_maps(group: MapGroup, view: ViewState, sections: Sections) -> list[dict[str, Any]]:
    if _is_long(group):
        return []
    heads = [(layer, head) for layer, call in enumerate(group.calls) for head in range(call.num_heads)]
    if len(heads) * 4 * len(group.query_tokens) * len(group.key_tokens) > EXACT_BYTES:
        heads = [(view.layer, view.head)]
    return [
        {"group": group.id, "layer": layer, "head": head}
        | _add(sections, group.calls[layer].weights(head=head)[group.row], "<f4")
        for layer, head in heads
    ]


def _is_long(group: MapGroup) -> bool:
    return max(len(group.query_tokens), len(group.key_tokens)) > EXACT_TOKENS


def _finite(value: float | None) -> float | None:
    """JSON has no NaN; a model that has blown up still shows its maps."""
    return None if value is None or not math.isfinite(value) else round(value, 6)

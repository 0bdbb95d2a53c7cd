"""Parts of a map, computed when someone asks: whole, tile by tile, of one head or of several, in tokens or words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from viz_core.maps.measures import combine_heads
from viz_core.maps.words import merge_words
from viz_core.runtime.interruption import may_end
from viz_core.view.map_group import MapGroup

TILE = 64
"""Cells on a side of a tile."""

# So many weights are computed at a time, over all heads: 2**22 float32 are 16 MB.
_BLOCK_WEIGHTS = 2**22

_MAP = re.compile(
    r"(?P<input>[01])\.(?P<group>[a-z0-9_-]{1,32}):(?P<heads>[0-9._]{3,2000}):(?P<how>mean|max):(?P<unit>tokens|words)"
)
_HEAD = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})")


@dataclass(frozen=True)
class MapName:
    """Which map: of which input and group, of which heads and how they are combined, between tokens or words.

    Written "0.cross:2.5_2.6:mean:tokens": input 0, layer 2, heads 5 and 6 (all counted from 0).
    """

    input: int
    group: str
    heads: tuple[tuple[int, int], ...]
    how: Literal["mean", "max"] = "mean"
    words: bool = False

    def __str__(self) -> str:
        heads = "_".join(f"{layer}.{head}" for layer, head in self.heads)
        return f"{self.input}.{self.group}:{heads}:{self.how}:{'words' if self.words else 'tokens'}"


def read_map_name(text: str) -> MapName | None:
    """A name read back; None where it is no such thing."""
    found = _MAP.fullmatch(text)
    if found is None:
        return None
    heads = [_HEAD.fullmatch(head) for head in found["heads"].split("_")]
    if not all(heads):
        return None
    pairs = tuple((int(head[1]), int(head[2])) for head in heads if head)
    how: Literal["mean", "max"] = "max" if found["how"] == "max" else "mean"
    return MapName(int(found["input"]), found["group"], pairs, how, found["unit"] == "words")


def map_size(group: MapGroup, words: bool) -> tuple[int, int]:
    """Rows and columns of this group's maps, in tokens or words."""
    if not words:
        return len(group.query_tokens), len(group.key_tokens)
    return _numbers(group.query_words, len(group.query_tokens))[-1] + 1, (
        _numbers(group.key_words, len(group.key_tokens))[-1] + 1
    )


def whole_map(group: MapGroup, name: MapName) -> Float[Tensor, "rows columns"]:
    """The exact map.

    Raises:
        ValueError: if the group has no such head.
    """
    rows, columns = map_size(group, name.words)
    return map_part(group, name, range(rows), range(columns))


def map_part(
    group: MapGroup, name: MapName, rows: range, columns: range, pool: tuple[int, int] = (1, 1)
) -> Float[Tensor, "rows columns"]:
    """The cells of some rows and columns, exact; or the largest of every `pool` of them, never the whole map at once.

    Args:
        rows: tokens or words that query.
        columns: tokens or words that are looked at.
        pool: so many rows and columns become one cell; a last smaller bunch is a cell too.

    Raises:
        ValueError: if the group has no such head.
    """
    for layer, head in name.heads:
        if layer >= len(group.calls) or head >= group.calls[layer].num_heads:
            raise ValueError(f"heads: expected heads of {group.id!r}, got layer {layer}, head {head}")
    pieces = []
    # A block of rows is a multiple of what becomes one cell, so that no cell is cut in two.
    height = max(1, _BLOCK_WEIGHTS // (len(name.heads) * len(group.key_tokens) * pool[0])) * pool[0]
    for start in range(rows.start, rows.stop, height):
        may_end()
        block = _exact(group, name, range(start, min(start + height, rows.stop)), columns)
        pieces.append(F.max_pool2d(block[None], pool, ceil_mode=True)[0] if pool != (1, 1) else block)
    return torch.cat(pieces)


def _exact(group: MapGroup, name: MapName, rows: range, columns: range) -> Float[Tensor, "rows columns"]:
    """The combined map in these rows and columns, of tokens or of whole words."""
    if not name.words:
        return _combined(group, name, slice(rows.start, rows.stop), slice(columns.start, columns.stop))
    query_words = _numbers(group.query_words, len(group.query_tokens))
    key_words = _numbers(group.key_words, len(group.key_tokens))
    queries = [i for i, word in enumerate(query_words) if word in rows]
    keys = [i for i, word in enumerate(key_words) if word in columns]
    tokens = _combined(group, name, slice(queries[0], queries[-1] + 1), slice(keys[0], keys[-1] + 1))
    return merge_words(
        tokens, [query_words[i] - rows.start for i in queries], [key_words[i] - columns.start for i in keys]
    )


def _combined(group: MapGroup, name: MapName, queries: slice, keys: slice) -> Float[Tensor, "queries keys"]:
    maps = [group.calls[layer].weights(head=head, queries=queries, keys=keys)[group.row] for layer, head in name.heads]
    return maps[0] if len(maps) == 1 else combine_heads(torch.stack(maps), name.how)


def _numbers(words: Sequence[int] | None, tokens: int) -> Sequence[int]:
    return range(tokens) if words is None else words

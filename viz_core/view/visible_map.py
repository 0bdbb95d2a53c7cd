"""The open map as an array with named rows and columns: heads combined, tokens or words, whole or zoomed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from viz_core.view.computed_maps import ComputedMaps
from viz_core.view.map_group import MapGroup
from viz_core.view.requests import Axis, MapRequest
from viz_core.view.state import ViewState, chosen_heads

MOST_CELLS = 1024
"""Cells on a side; of a longer map each cell is the largest of several weights, as in the app."""


@dataclass(frozen=True)
class Side:
    """Rows or columns of a map: their names, and which of them are pinned."""

    names: list[str]
    pinned: list[int]


@dataclass(frozen=True)
class VisibleMap:
    """A map or a part of it; `pool` rows and columns of it are one cell, the largest of their weights."""

    weights: Float[np.ndarray, "rows columns"]
    queries: Side
    keys: Side
    pool: tuple[int, int] = (1, 1)


def visible_map(group: MapGroup, state: ViewState, most: int = MOST_CELLS) -> VisibleMap:
    """The map that is open; without one that it is compared with."""
    merged = state.display.unit == "words"
    words = (group.query_words, group.key_words) if merged else (None, None)
    maps = ComputedMaps(group.calls, group.row, group.query_words, group.key_words)
    height, width = maps.size(merged)
    rows, columns = _part(state.display.zoom, 0, height), _part(state.display.zoom, 1, width)
    pool = -(-len(rows) // most), -(-len(columns) // most)
    wanted = MapRequest(tuple(shown_heads(group, state)), "max" if state.display.how == "max" else "mean", merged)
    weights = maps.cells(wanted, rows, columns, pool)
    return VisibleMap(
        weights.numpy(),
        _side("query", group.query_tokens, words[0], state, rows, pool[0]),
        _side("key", group.key_tokens, words[1], state, columns, pool[1]),
        pool,
    )


def heads_in_rows(layers: Sequence[np.ndarray], gap: int, blank: float) -> np.ndarray:
    """The maps of all heads in one array, a row a layer, each with so many blank cells below it and to its right.

    Args:
        layers: of the maps of each layer, (heads, rows, columns); some layers may have fewer heads.
    """
    rows, columns = layers[0].shape[1:]
    heads = max(len(layer) for layer in layers)
    cells = np.full((len(layers), rows + gap, heads, columns + gap), blank, layers[0].dtype)
    for into, layer in zip(cells, layers, strict=True):
        into[:rows, : len(layer), :columns] = layer.swapaxes(0, 1)
    return cells.reshape(len(layers) * (rows + gap), heads * (columns + gap))


def shown_heads(group: MapGroup, state: ViewState) -> list[tuple[int, int]]:
    """Layer and head of each that is combined in the map."""
    match state.display.heads:
        case "one":
            return [(state.layer, state.head)]
        case "layer":
            return [head for head in group.heads if head[0] == state.layer]
        case "all":
            return list(group.heads)
        case chosen:
            return chosen_heads(chosen)


def _side(
    axis: Axis, tokens: Sequence[str], words: Sequence[int] | None, state: ViewState, part: range, pool: int
) -> Side:
    names = _names(tokens, words)
    pinned = [pin.index if words is None else words[pin.index] for pin in state.pins if pin.axis == axis]
    return Side([names[i] for i in part[::pool]], [(i - part.start) // pool for i in pinned if i in part])


def _part(zoom: str, axis: int, size: int) -> range:
    """The rows (axis 0) or columns of the part shown: all, or so many from a first one on."""
    if zoom == "whole":
        return range(size)
    numbers = [int(number) for number in zoom.split(".")]
    first = min(numbers[axis], size - 1)
    return range(first, max(first + 1, min(size, first + numbers[axis + 2])))


def _names(tokens: Sequence[str], words: Sequence[int] | None) -> list[str]:
    """What rows or columns are called: tokens, or the words that they are pieces of."""
    joined = list(tokens)
    if words is not None:
        joined = [""] * (words[-1] + 1)
        for token, word in zip(tokens, words, strict=True):
            joined[word] += token.removeprefix("##")
    return [_visible(text) for text in joined]


def _visible(text: str) -> str:
    """Replace characters that cannot be printed."""
    return "".join(c if c.isprintable() else "⏎" if c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)

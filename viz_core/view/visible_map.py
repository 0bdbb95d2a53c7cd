"""The open map as a figure shows it: its part, its tokens, its title and its caption."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from jaxtyping import Float

from viz_core.trace.arguments import is_index
from viz_core.view.computed_maps import ComputedMaps
from viz_core.view.map_group import MapGroup
from viz_core.view.payload import View
from viz_core.view.requests import Axis, MapRequest
from viz_core.view.responses import Pairs, joined_names, match_tokens, subtract_matched
from viz_core.view.state import ViewState, chosen_heads, open_group

MAX_CELLS = 1024
"""Cells on a side; of a longer map each cell is the largest of several weights, as in the app."""


Positions = slice | Sequence[int] | None
"""Rows or columns of a figure: some positions of tokens, in this order; all that the view shows where None."""


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


def visible_map(
    group: MapGroup, state: ViewState, most: int = MAX_CELLS, block: tuple[Positions, Positions] = (None, None)
) -> VisibleMap:
    """The map that is open, or a block of it; without one that it is compared with."""
    merged = state.display.unit == "words"
    words = (group.query_words, group.key_words) if merged else (None, None)
    maps = ComputedMaps(group.calls, group.row, group.query_words, group.key_words)
    height, width = maps.size(merged)
    places = _places("rows", block[0], height, most), _places("keys", block[1], width, most)
    parts = [
        range(min(some), max(some) + 1) if some else _part(state.display.zoom, axis, size)
        for axis, (some, size) in enumerate(zip(places, (height, width), strict=True))
    ]
    pool = -(-len(parts[0]) // most), -(-len(parts[1]) // most)
    wanted = MapRequest(tuple(shown_heads(group, state)), "max" if state.display.how == "max" else "mean", merged)
    weights = maps.cells(wanted, parts[0], parts[1], pool).numpy()
    cells = [
        [range(i, min(i + step, part.stop)) for i in some or part[::step]]
        for some, part, step in zip(places, parts, pool, strict=True)
    ]
    taken = [
        [(cell.start - part.start) // step for cell in some]
        for some, part, step in zip(cells, parts, pool, strict=True)
    ]
    return VisibleMap(
        weights[np.ix_(*taken)],
        _side("query", group.query_tokens, words[0], state, cells[0]),
        _side("key", group.key_tokens, words[1], state, cells[1]),
        pool,
    )


def _places(name: str, wanted: Positions, size: int, most: int) -> list[int]:
    """The positions that are wanted; none where all are."""
    if wanted is None:
        return []
    if not isinstance(wanted, slice) and not all(is_index(i) and -size <= i < size for i in wanted):
        raise ValueError(f"{name}: expected a slice, or positions 0 to {size - 1}, got {wanted!r}")
    found = list(range(size))[wanted] if isinstance(wanted, slice) else [range(size)[i] for i in wanted]
    if not found or max(found) - min(found) >= most:
        raise ValueError(f"{name}: expected at least one position, all within {most} of each other, got {wanted!r}")
    return found


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
    axis: Axis, tokens: Sequence[str], words: Sequence[int] | None, state: ViewState, cells: Sequence[range]
) -> Side:
    """The side whose cells are these positions, each named by its first."""
    names = _names(tokens, words)
    pinned = [pin.index if words is None else words[pin.index] for pin in state.pins if pin.axis == axis]
    marked = [place for i in pinned for place, cell in enumerate(cells) if i in cell]
    return Side([names[cell.start] for cell in cells], marked)


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


_MAX_NAMED = 12  # heads
# Words that go by a number, as in ui/text/words.py.
_FORMS = re.compile(r"\{(\w+):([^{}|]*)\|(?:[^{}|]*\|)*([^{}|]*)\}")


@dataclass(frozen=True)
class Panel:
    """One map of a figure and its title; `signed` where it may be negative, `differs` if it is a difference of maps."""

    title: str
    group: MapGroup
    shown: VisibleMap
    signed: bool = False
    differs: bool = False


def panels(view: View, state: ViewState, block: tuple[Positions, Positions] = (None, None)) -> list[Panel]:
    """The open map, with the map it is compared with, or their difference over aligned tokens; a block of each."""
    group = open_group(view.groups, state)
    other = _compared(view, state)
    number = other[0] if other else 0
    first = _panel(view, 0, number, group, state, block)
    if other is None:
        return [first]
    second = _panel(view, number, number, *other[1:], block)
    if state.display.compare == "side":
        return [first, second]
    title = fill(view.words["minus"], first=first.title, second=second.title)
    return [Panel(title, group, _difference(first.shown, second.shown), signed=True, differs=True)]


def _difference(first: VisibleMap, second: VisibleMap) -> VisibleMap:
    """The first minus the second; the tokens of two texts are matched by edit distance."""
    rows = match_tokens(first.queries.names, second.queries.names)
    columns = match_tokens(first.keys.names, second.keys.names)
    return VisibleMap(
        subtract_matched(first.weights, second.weights, rows, columns),
        _joined(first.queries, second.queries, rows),
        _joined(first.keys, second.keys, columns),
        first.pool,
    )


def _joined(first: Side, second: Side, pairs: Pairs) -> Side:
    names = joined_names(first.names, second.names, pairs)
    return Side(names, [place for place, (own, _) in enumerate(pairs) if own in first.pinned])


def lines(view: View, state: ViewState, shown: Sequence[Panel]) -> list[str]:
    """Lines of the caption: how heads and cells are combined, then model and text of each input shown."""
    words, display, (first, *_) = view.words, state.display, shown
    heads = shown_heads(first.group, state)
    sentences = []
    if 1 < len(heads) < len(first.group.heads):
        names = [_short(words, first.group, *head) for head in heads[:_MAX_NAMED]]
        more = " …" if len(heads) > _MAX_NAMED else ""
        row = reduce(lambda before, following: fill(words["row"], before=before, next=following), names)
        sentences.append(fill(words["of_heads"], names=row + more))
    if len(heads) > 1 and display.how == "max":
        sentences.append(words["rows_not_one"])
    if display.unit == "words" and (first.group.query_words or first.group.key_words):
        sentences.append(words["merged"])
    rows, columns = first.shown.pool
    if (rows, columns) != (1, 1):
        sentences.append(fill(words["pooled"], rows=rows, columns=columns))
    inputs = [0, *([other[0]] if (other := _compared(view, state)) else [])]
    if first.signed and not first.differs:
        sentences.append(words["signed_rows"])
    if first.differs:
        sentences += [words["difference_scaled"], *([words["matched"]] if inputs[-1] else [])]
    return list(dict.fromkeys([*sentences, *made_lines(view, state, inputs)]))


def made_lines(view: View, state: ViewState, inputs: Sequence[int]) -> list[str]:
    """Model and text of each of these inputs."""
    words, sentences = view.words, []
    for made in dict.fromkeys(found.provenance for number in inputs if (found := view.group(number, state.group))):
        if made.model:
            name = "made_by_revision" if made.revision else "made_by"
            sentences.append(fill(words[name], model=made.model, revision=made.revision))
        if made.text:
            sentences.append(fill(words["made_of"], text=made.text))
    return sentences


def _compared(view: View, state: ViewState) -> tuple[int, MapGroup, ViewState] | None:
    """Input, group and state of what the open map is compared with."""
    if state.display.compare == "off" or state.display.other == "none":
        return None
    number, layer, head = map(int, state.display.other.split("."))
    if number and state.display.compare == "difference" and state.group in view.beside:
        return None
    group = view.group(number, state.group)
    there = replace(state, layer=layer, head=head, pins=() if number else state.pins)
    there = replace(there, display=replace(state.display, heads="one"))
    return None if group is None or not there.fits([group]) else (number, group, there)


def _panel(
    view: View, number: int, other: int, group: MapGroup, state: ViewState, block: tuple[Positions, Positions]
) -> Panel:
    """A map named by its head, or by how many are combined; and by its input, where two are shown."""
    heads = shown_heads(group, state)
    if len(heads) > 1:
        name = fill(view.words[f"combined_{state.display.how}"], count=len(heads))
    else:
        ((layer, head),) = heads
        name = fill(view.words["head_name"], layer=group.calls[layer].layer + 1, head=head + 1)
    title = fill(view.words["of_input"], name=name, input=view.inputs[number]) if other else name
    signed = any(group.calls[layer].signed for layer, _ in heads)
    return Panel(title, group, visible_map(group, state, block=block), signed)


def _short(words: Mapping[str, str], group: MapGroup, layer: int, head: int) -> str:
    number = group.calls[layer].layer + 1
    return f"{fill(words['layer_short'], layer=number)} {fill(words['head_short'], head=head + 1)}"


def file_title(view: View, group: MapGroup, name: str) -> str:
    """The title of a file that shows maps of this group."""
    return fill(view.words["file_title"], kind=group.label, name=name)


def fill(text: str, /, **values: object) -> str:
    """Fill a template: {name} by its value, {name:one|many} by the singular or plural form."""
    text = _FORMS.sub(lambda place: place[2] if values[place[1]] == 1 else place[3], text)
    for name, value in values.items():
        text = text.replace("{" + name + "}", str(value))
    return text

"""Pictures of multi-head attention: the flow of shapes, heads, costs and the book's example."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from plotly.subplots import make_subplots

from ui.widgets import traces
from ui.widgets.chart import named_parts
from ui.widgets.figure_style import ACCENT, CATEGORIES, KEYS, QUERIES, VALUES, Labels, lay_out

_PLAIN = "#7f8a90"


class Block(NamedTuple):
    """A tensor in the flow: its position (columns from the left, rows from the top) and its appearance."""

    name: str  # of a field of `MultiHeadSteps`
    row: float
    left: float
    width: float
    colour: str
    cut: bool = False  # into heads


# Queries, keys and values stay in their own columns until they meet.
FLOW = (
    Block("input", 0, 1.1, 1.0, _PLAIN),
    Block("queries", 1, 0, 1.0, QUERIES),
    Block("keys", 1, 1.1, 1.0, KEYS),
    Block("values", 1, 2.2, 1.0, VALUES),
    Block("split_queries", 2, 0, 1.0, QUERIES, True),
    Block("split_keys", 2, 1.1, 1.0, KEYS, True),
    Block("split_values", 2, 2.2, 1.0, VALUES, True),
    Block("scores", 3, 0, 1.0, _PLAIN, True),
    Block("masked", 3, 1.1, 1.0, _PLAIN, True),
    Block("exponentials", 4, 1.1, 1.0, _PLAIN, True),
    Block("weights", 5, 1.1, 1.0, ACCENT, True),
    Block("attended", 6, 1.65, 1.0, VALUES, True),
    Block("concatenated", 7, 1.65, 1.0, VALUES),
    Block("output", 8, 1.65, 1.0, _PLAIN),
)
_ARROWS = (
    ("input", "queries"),
    ("input", "keys"),
    ("input", "values"),
    ("queries", "split_queries"),
    ("keys", "split_keys"),
    ("values", "split_values"),
    ("split_queries", "scores"),
    ("split_keys", "scores"),
    ("scores", "masked"),
    ("masked", "exponentials"),
    ("exponentials", "weights"),
    ("weights", "attended"),
    ("split_values", "attended"),
    ("attended", "concatenated"),
    ("concatenated", "output"),
)
_PITCH, _HEIGHT = 1.0, 0.56


def flow_figure(shapes: Mapping[str, tuple[int, ...]], num_heads: int, chosen: str, labels: Labels) -> go.Figure:
    """Every tensor with its shape, from input to output; those cut into heads are drawn cut, the chosen one framed.

    Args:
        shapes: of each tensor, by its name in `MultiHeadSteps`.
        chosen: the tensor that is framed.

    Raises:
        ValueError: if a tensor of the flow has no shape, or the chosen one is not in it.
    """
    missing = [block.name for block in FLOW if block.name not in shapes]
    if missing:
        raise ValueError(f"shapes: expected one for each tensor, got none for {', '.join(missing)}")
    blocks = {block.name: block for block in FLOW}
    if chosen not in blocks:
        raise ValueError(f"chosen: expected one of {', '.join(blocks)}, got {chosen!r}")
    figure = go.Figure()
    for start, end in _ARROWS:
        _arrow(figure, blocks[start], blocks[end])
    for block in FLOW:
        if block.cut and num_heads > 1:
            _cut(figure, block, num_heads)
    # Added one by one, each is checked often.
    figure.layout.shapes = [shape for block in FLOW for shape in _shapes(block, block.name == chosen)]
    x, y = [block.left + block.width / 2 for block in FLOW], [_middle(block) for block in FLOW]
    texts = [f"<b>{labels[block.name]}</b><br>{_shape(shapes[block.name])}" for block in FLOW]
    traces.dots(figure, x, y, mode="text", text=texts, textfont={"size": 12}, hoverinfo="none")
    return lay_out(
        figure,
        "",
        "",
        height=800,
        xaxis={"visible": False, "range": [-0.08, 3.28], "fixedrange": True},
        yaxis={"visible": False, "range": [-8 * _PITCH - 0.08, _HEIGHT + 0.08], "fixedrange": True},
        margin={"l": 4, "r": 4, "t": 4, "b": 4},
    )


def heads_figure(weights: Float[np.ndarray, "heads n n"], labels: Labels) -> go.Figure:
    """A small map for each head, four across: queries down, keys across."""
    heads = len(weights)
    columns = min(4, heads)
    rows = -(-heads // columns)
    titles = [labels["head-number"].format(head=head + 1) for head in range(heads)]
    figure = make_subplots(
        rows, columns, subplot_titles=titles, shared_xaxes=True, shared_yaxes=True, horizontal_spacing=0.03
    )
    for head in range(heads):
        traces.cells(
            figure, weights[head], hover="%{y}, %{x}: %{z:.3f}", row=head // columns + 1, col=head % columns + 1
        )
    bare: dict[str, Any] = {"showgrid": False, "zeroline": False, "showticklabels": False}
    axes = {"xaxis": bare, "yaxis": {"autorange": "reversed", **bare}}
    return lay_out(figure, "", "", 300, **axes, meta=named_parts(whole="head"))


def _shape(sizes: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, sizes))})"


def _middle(block: Block) -> float:
    return -block.row * _PITCH + _HEIGHT / 2


def _shapes(block: Block, chosen: bool) -> Iterable[dict[str, Any]]:
    """The background and frame of a block."""
    bottom = -block.row * _PITCH
    corners = {"type": "rect", "x0": block.left, "x1": block.left + block.width, "y0": bottom, "y1": bottom + _HEIGHT}
    line = {"color": ACCENT, "width": 3.5} if chosen else {"color": block.colour, "width": 1.2}
    return corners | {"fillcolor": block.colour, "opacity": 0.22, "line": {"width": 0}}, corners | {"line": line}


def _cut(figure: go.Figure, block: Block, num_heads: int) -> None:
    bottom = -block.row * _PITCH
    cuts = block.left + block.width * np.arange(1, num_heads) / num_heads
    x = np.stack([cuts, cuts, np.full_like(cuts, np.nan)], axis=1).ravel()
    y = np.tile([bottom, bottom + _HEIGHT, np.nan], num_heads - 1)
    traces.line(figure, x, y, block.colour, width=1, opacity=0.35, hoverinfo="none")


def _arrow(figure: go.Figure, start: Block, end: Block) -> None:
    """An arrow from the bottom of one block to the top of the next, or sideways within a row."""
    if start.row == end.row:
        x, y = [start.left + start.width, end.left], [_middle(start), _middle(end)]
    else:
        x = [start.left + start.width / 2, end.left + end.width / 2]
        y = [-start.row * _PITCH, -end.row * _PITCH + _HEIGHT]
    traces.line(
        figure,
        x,
        y,
        "rgba(128,128,128,0.7)",
        width=1.4,
        size=[0, 9],
        symbol="arrow",
        marker={"angleref": "previous", "color": "rgba(128,128,128,0.9)"},
        hoverinfo="none",
    )


def ranges_figure(
    ranges: Mapping[str, Float[np.ndarray, " heads"]], uniform: Mapping[str, float], chosen: int, labels: Labels
) -> go.Figure:
    """Two bars for each head, over all tokens and among words; dotted, a head with uniform weights.

    Args:
        ranges: by "all" and "words".
        uniform: likewise.
        chosen: the open head, whose bars have an outline.
    """
    figure = go.Figure()
    colours = {"all": CATEGORIES[7], "words": ACCENT}
    for name, distances in ranges.items():
        figure.add_bar(
            name=labels[f"{name}-tokens"],
            x=np.arange(1, len(distances) + 1, dtype=np.float32),
            y=distances.astype(np.float32),
            marker={
                "color": colours[name],
                "line": {"color": ACCENT, "width": [2.5 if head == chosen else 0 for head in range(len(distances))]},
            },
            hovertemplate="%{x}: %{y:.2f}",
        )
        figure.add_hline(y=uniform[name], line={"color": colours[name], "dash": "dot"})
    axis = {"dtick": max(1, len(ranges["all"]) // 16)}
    return lay_out(figure, labels["head"], labels["range"], 300, xaxis=axis)


def toy_figure(weights: Float[np.ndarray, "rows heads queries keys"], labels: Labels) -> go.Figure:
    """A small map for each head (across) of each batch row (down): queries down, keys across."""
    rows, heads, queries, keys = weights.shape
    titles = [labels["head-number"].format(head=head + 1) for head in range(heads)] + [""] * heads * (rows - 1)
    figure = make_subplots(
        rows, heads, subplot_titles=titles, shared_xaxes=True, shared_yaxes=True, horizontal_spacing=0.02
    )
    for row in range(rows):
        for head in range(heads):
            traces.cells(
                figure,
                weights[row, head],
                hover="%{y}, %{x}: %{z:.3f}",
                gap=1,
                x=np.arange(1, keys + 1),
                y=np.arange(1, queries + 1),
                row=row + 1,
                col=head + 1,
            )
    axis = {"showgrid": False, "zeroline": False}
    lay_out(figure, "", "", 330, xaxis=axis, yaxis={"autorange": "reversed", **axis})
    figure.update_xaxes(title=labels["key"], row=rows, col=(heads + 1) // 2)
    for row in range(rows):
        figure.update_yaxes(title=labels["batch-row"].format(row=row + 1), row=row + 1, col=1)
    return figure

"""A stack drawn as a network, and the way from one token to another."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from pages.architectures.figures import Edge, Unit, connections, shortest_path
from ui.widgets import traces
from ui.widgets.chart import named_parts
from ui.widgets.figure_style import ACCENT, KEYS, QUERIES, Labels, lay_out
from viz_core.lessons.architectures import LayerSizes, path_length

QUIET = "rgba(128,128,128,0.55)"
FAINT = "rgba(128,128,128,0.28)"


def connection_figure(
    name: str,
    first: int,
    last: int,
    sizes: LayerSizes,
    words: Sequence[str],
    labels: Labels,
    extra_layers: int = 0,
    narrow: bool = False,
) -> go.Figure:
    """A stack as deep as the path from one token to another is long, the tokens at its foot, and the path.

    Tokens are counted from 0 here and from 1 in the picture.

    Args:
        words: the tokens.
        extra_layers: layers more (or, below 0, fewer) than the path needs; without enough there is no path.
        narrow: whether it is small, so that no words are under it.

    Raises:
        ValueError: if there is no such layer, or a token is not within 0 to n - 1.
    """
    way = shortest_path(name, first, last, sizes)
    length = path_length(name, first, last, sizes)
    if name == "recurrent":
        depth, way = 1, way[: len(way) + min(0, extra_layers)]
    else:
        depth = max(0, int(length if np.isfinite(length) else 1) + extra_layers)
        way = way if depth >= length else []
    edges = connections(name, sizes, depth) if depth else []
    figure = go.Figure()
    _edges(figure, edges, FAINT, 1)
    top = Unit(depth, last) if name == "recurrent" or not way else way[-1]  # without a path: what it can see
    seen = _receptive_field(edges, top)
    _edges(figure, [edge for edge in edges if set(edge) <= seen], QUIET, 1.4)
    _way(figure, way)
    _units(figure, words, depth, seen, labels, 5 if narrow else 9 if depth <= 6 else 6)
    figure.update_traces(meta="token", selector={"mode": "markers"})
    for token, colour, way_end in ((first, KEYS, 0), (last, QUERIES, top.layer)):
        traces.dots(
            figure,
            [token + 1],
            [way_end],
            colour,
            hover=labels["unit"],
            size=10 if narrow else 15,
            text=[words[token]],
            meta="token",
        )
    every = max(1, -(-depth // 6))
    ticks = {
        "tickvals": list(range(1, sizes.n + 1)),
        "ticktext": list(words),
        "tickangle": -50,
        "tickfont": {"size": 11},
    }
    ticks |= {"showticklabels": not narrow, "showgrid": False, "zeroline": False}
    return lay_out(
        figure,
        "" if narrow else labels["token"],
        "" if narrow else labels["layer"],
        height=170 if narrow else 270,
        xaxis={"range": [0.4, sizes.n + 0.6], **ticks},
        yaxis={"range": [-0.4, depth + 0.4], "dtick": every, "showgrid": False, "zeroline": False},
        margin={"t": 8, "l": 0, "r": 0, "b": 0, "pad": 2} if narrow else {"t": 8},
        meta=named_parts(whole=name),
    )


def centred_figure(labels: Labels) -> go.Figure:
    """Two layers of a convolution that reads one token on each side: the middle unit has seen five tokens."""
    edges = [
        (Unit(layer, t + side), Unit(layer + 1, t))
        for layer in (0, 1)
        for t in range(7)
        for side in (-1, 0, 1)
        if 0 <= t + side < 7
    ]
    seen = _receptive_field(edges, Unit(2, 3))
    figure = go.Figure()
    _edges(figure, edges, FAINT, 1)
    _edges(figure, [edge for edge in edges if set(edge) <= seen], ACCENT, 2)
    _units(figure, [str(token + 1) for token in range(7)], 2, seen, labels)
    axis = {"showgrid": False, "zeroline": False, "dtick": 1}
    return lay_out(figure, labels["token"], labels["layer"], height=240, xaxis=axis, yaxis=axis, margin={"t": 8})


def graph_figure(num_tokens: int, labels: Labels) -> go.Figure:
    """Self-attention as a graph: the tokens on a circle, and an edge between every two."""
    angles = np.linspace(np.pi / 2, np.pi / 2 - 2 * np.pi, num_tokens, endpoint=False)
    x, y = np.cos(angles), np.sin(angles)
    figure = go.Figure()
    for i in range(num_tokens):
        for j in range(i):
            traces.line(figure, x[[i, j]], y[[i, j]], QUIET, width=1.4)
    figure.add_scatter(
        x=x,
        y=y,
        mode="markers+text",
        marker={"size": 30, "color": ACCENT},
        text=[str(i + 1) for i in range(num_tokens)],
        textfont={"color": "white"},
        hovertemplate=labels["token"] + " %{text}<extra></extra>",
    )
    hidden = {"visible": False, "range": [-1.25, 1.25]}
    figure.update_traces(showlegend=False)
    return lay_out(figure, "", "", height=280, xaxis=hidden, yaxis={**hidden, "scaleanchor": "x"}, margin={"t": 8})


def _edges(figure: go.Figure, edges: Sequence[Edge], colour: str, width: float) -> None:
    """Many lines as one trace, with gaps between them."""
    points = np.full((len(edges), 3, 2), np.nan, dtype=np.float32)
    for i, (start, end) in enumerate(edges):
        points[i, 0] = start.token + 1, start.layer
        points[i, 1] = end.token + 1, end.layer
    x, y = points.reshape(-1, 2).T
    line = {"color": colour, "width": width}
    traces.line(figure, x.copy(), y.copy(), line=line)


def _way(figure: go.Figure, way: Sequence[Unit]) -> None:
    traces.line(
        figure,
        [unit.token + 1 for unit in way],
        [unit.layer for unit in way],
        ACCENT,
        width=4,
        size=[0] + [11] * (len(way) - 1),
        symbol="arrow",
        marker={"angleref": "previous", "color": ACCENT},
        meta="path",
        hoverinfo="none",
    )


def _units(figure: go.Figure, words: Sequence[str], depth: int, seen: set[Unit], labels: Labels, size: int = 9) -> None:
    """A dot for every unit, darker in the receptive field of the last one."""
    units = [Unit(layer, token) for layer in range(depth + 1) for token in range(len(words))]
    traces.dots(
        figure,
        [unit.token + 1 for unit in units],
        [unit.layer for unit in units],
        ["rgba(110,118,124,1)" if unit in seen else "rgba(160,166,172,0.7)" for unit in units],
        hover=labels["unit"],
        size=size,
        text=[words[unit.token] for unit in units],
    )


def _receptive_field(edges: Sequence[Edge], top: Unit) -> set[Unit]:
    """Every unit from which a signal reaches the top one."""
    below: dict[Unit, list[Unit]] = {}
    for start, end in edges:
        below.setdefault(end, []).append(start)
    seen, waiting = {top}, [top]
    while waiting:
        for unit in below.get(waiting.pop(), []):
            if unit not in seen:
                seen.add(unit)
                waiting.append(unit)
    return seen

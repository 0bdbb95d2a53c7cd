"""Pictures of the architectures: a stack drawn as a network, costs as curves, the path between every pair."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from plotly.subplots import make_subplots

from viz_core.figures.style import ACCENT, CATEGORIES, KEYS, QUERIES, lay_out, mark_on_log_axis
from viz_core.lessons.architectures.costs import ARCHITECTURES, LayerSizes, layer_cost
from viz_core.lessons.architectures.paths import Edge, Unit, connections, longest_path, shortest_path
from viz_core.runtime.stopwatch import Measurement

Labels = Mapping[str, str]

# Every chart of the chapter: the layer's colour, and a mark for readers who do not tell colours apart.
COLOURS = dict(zip(ARCHITECTURES, (ACCENT, *CATEGORIES[3:7]), strict=True))
SYMBOLS = dict(zip(ARCHITECTURES, ("circle", "square", "diamond", "diamond-open", "triangle-up"), strict=True))
QUIET = "rgba(128,128,128,0.55)"
FAINT = "rgba(128,128,128,0.28)"


def connection_figure(name: str, first: int, last: int, sizes: LayerSizes, labels: Labels) -> go.Figure:
    """A stack deep enough for its longest path, the tokens at its foot, and the way from one token to another.

    Tokens are counted from 0 here and from 1 in the picture.

    Raises:
        ValueError: if there is no such layer, or the tokens are not in order within 0 to n - 1.
    """
    way = shortest_path(name, first, last, sizes)
    deepest = longest_path(name, sizes)
    depth = int(deepest) if np.isfinite(deepest) and name != "recurrent" else 1
    edges = connections(name, sizes, depth)
    figure = go.Figure()
    _edges(figure, edges, FAINT, 1)
    seen = _receptive_field(edges, way[-1]) if way else set()
    _edges(figure, [edge for edge in edges if set(edge) <= seen], QUIET, 1.4)
    _way(figure, way)
    _units(figure, sizes.n, depth, seen, labels)
    for token, colour, way_end in ((first, KEYS, 0), (last, QUERIES, way[-1].layer if way else depth)):
        figure.add_scatter(
            x=np.array([token + 1], dtype=np.float32),
            y=np.array([way_end], dtype=np.float32),
            mode="markers",
            marker={"size": 15, "color": colour},
            hovertemplate=labels["unit"] + "<extra></extra>",
            showlegend=False,
        )
    lay_out(figure, labels["token"], labels["layer"], height=250).update_layout(margin={"t": 8})
    figure.update_xaxes(range=[0.4, sizes.n + 0.6], dtick=1, showgrid=False, zeroline=False)
    every = max(1, -(-depth // 6))
    return figure.update_yaxes(range=[-0.4, depth + 0.4], dtick=every, showgrid=False, zeroline=False)


def curves_figure(
    shown: str, lengths: Sequence[int], sizes: LayerSizes, crossings: Mapping[str, int], labels: Labels
) -> go.Figure:
    """One column of the table for every layer as a curve over n, with the reader's n and where curves cross.

    Args:
        shown: "order", "counted", "sequential" or "path", as in `LayerCost`.
        crossings: n at which self-attention meets another layer, by the layer's name; only those in sight are drawn.
    """
    figure = go.Figure()
    for name in ARCHITECTURES:
        costs = [layer_cost(name, LayerSizes(n, sizes.d, sizes.k, sizes.r)) for n in lengths]
        values = np.array([getattr(cost, shown) for cost in costs], dtype=np.float64)
        figure.add_scatter(
            x=np.array(lengths, dtype=np.float32),
            y=np.where(np.isfinite(values), values, np.nan).astype(np.float32),
            mode="lines+markers",
            name=labels[name],
            line={"color": COLOURS[name], "width": 2.5, "dash": "dash" if name == "dilated" else "solid"},
            marker={"size": 7, "symbol": SYMBOLS[name]},
            hovertemplate="%{y:,.4~g}",
        )
    mark_on_log_axis(figure, sizes.n, labels["yours"])
    attention = [layer_cost("attention", LayerSizes(n, sizes.d, sizes.k, sizes.r)) for n in crossings.values()]
    if crossings:
        figure.add_scatter(
            x=np.array(list(crossings.values()), dtype=np.float32),
            y=np.array([getattr(cost, shown) for cost in attention], dtype=np.float32),
            mode="markers",
            name=labels["crossing"],
            marker={"size": 15, "symbol": "circle-open", "color": ACCENT, "line": {"width": 2.5}},
            hovertemplate="n = %{x:,}",
        )
    ends = [math.log10(lengths[0]) - 0.05, math.log10(lengths[-1]) + 0.05]
    figure.update_xaxes(type="log", range=ends, tickvals=lengths[::2], ticktext=[f"{n:,}" for n in lengths[::2]])
    figure.update_yaxes(type="log", exponentformat="power", dtick=1 if shown in {"sequential", "path"} else 2)
    figure.update_layout(hovermode="x unified")
    return lay_out(figure, labels["tokens"], labels[shown], height=460)


def pairs_figure(matrices: Mapping[str, Float[np.ndarray, "n n"]], labels: Labels) -> go.Figure:
    """Path length between every pair of tokens, one map a layer on one colour scale; blank where none leads."""
    columns = 3
    rows = -(-len(matrices) // columns)
    titles = [labels[name] for name in matrices]
    figure = make_subplots(rows, columns, subplot_titles=titles, vertical_spacing=0.16, horizontal_spacing=0.05)
    for i, values in enumerate(matrices.values()):
        tokens = np.arange(1, len(values) + 1, dtype=np.float32)
        heatmap = go.Heatmap(
            z=np.where(np.isfinite(values), values, np.nan).astype(np.float32),
            x=tokens,
            y=tokens,
            coloraxis="coloraxis",
            hoverongaps=False,
            hovertemplate="%{y} → %{x}: %{z}<extra></extra>",
        )
        figure.add_trace(heatmap, i // columns + 1, i % columns + 1)
    lay_out(figure, "", "", height=290 * rows)
    figure.update_xaxes(constrain="domain", showgrid=False, zeroline=False)
    figure.update_yaxes(autorange="reversed", constrain="domain", showgrid=False, zeroline=False)
    for i in range(len(matrices)):
        anchor = "x" if i == 0 else f"x{i + 1}"
        figure.update_yaxes(scaleanchor=anchor, row=i // columns + 1, col=i % columns + 1)
    figure.update_xaxes(title=labels["token"], row=rows)
    figure.update_yaxes(title=labels["token"], col=1)
    bar = {"title": labels["steps"], "thickness": 12}
    return figure.update_layout(coloraxis={"colorscale": "Cividis", "cmin": 0, "colorbar": bar})


def measured_figure(measurements: Sequence[Measurement], most: int, labels: Labels) -> go.Figure:
    """Milliseconds by n for every layer measured so far, on logarithmic axes that reach to `most` tokens."""
    figure = go.Figure()
    for name in ARCHITECTURES:
        own = [m for m in measurements if m.name == name and m.seconds is not None]
        figure.add_scatter(
            x=np.array([m.n for m in own], dtype=np.float32),
            y=np.array([1000 * (m.seconds or 0) for m in own], dtype=np.float32),
            mode="lines+markers",
            name=labels[name],
            line={"color": COLOURS[name], "width": 2.5, "dash": "dash" if name == "dilated" else "solid"},
            marker={"size": 7, "symbol": SYMBOLS[name]},
            hovertemplate="%{y:.3~g} ms",
        )
    return _by_length(figure, most, labels["tokens"], labels["milliseconds"])


def theory_figure(sizes: LayerSizes, lengths: Sequence[int], labels: Labels) -> go.Figure:
    """Multiplications of the same layers at the same lengths, on axes like those of `measured_figure`."""
    figure = go.Figure()
    for name in ARCHITECTURES:
        costs = [layer_cost(name, LayerSizes(n, sizes.d, sizes.k, sizes.r)).counted for n in lengths]
        figure.add_scatter(
            x=np.array(lengths, dtype=np.float32),
            y=np.array(costs, dtype=np.float32),
            mode="lines+markers",
            name=labels[name],
            line={"color": COLOURS[name], "width": 2.5, "dash": "dash" if name == "dilated" else "solid"},
            marker={"size": 7, "symbol": SYMBOLS[name]},
            hovertemplate="%{y:.3~s}",
            showlegend=False,
        )
    return _by_length(figure, max(lengths), labels["tokens"], labels["counted"])


def _by_length(figure: go.Figure, most: int, x: str, y: str) -> go.Figure:
    ticks = [2**power for power in range(4, most.bit_length(), 2)]
    figure.update_xaxes(
        type="log", range=[np.log10(13), np.log10(1.2 * most)], tickvals=ticks, ticktext=[f"{n:,}" for n in ticks]
    )
    figure.update_yaxes(type="log", exponentformat="power", dtick=1)
    figure.update_layout(hovermode="x unified")
    return lay_out(figure, x, y, height=420)


def _edges(figure: go.Figure, edges: Sequence[Edge], colour: str, width: float) -> None:
    """Many lines as one trace, with gaps between them."""
    points = np.full((len(edges), 3, 2), np.nan, dtype=np.float32)
    for i, (start, end) in enumerate(edges):
        points[i, 0] = start.token + 1, start.layer
        points[i, 1] = end.token + 1, end.layer
    x, y = points.reshape(-1, 2).T
    line = {"color": colour, "width": width}
    figure.add_scatter(x=x.copy(), y=y.copy(), mode="lines", line=line, hoverinfo="skip", showlegend=False)


def _way(figure: go.Figure, way: Sequence[Unit]) -> None:
    figure.add_scatter(
        x=np.array([unit.token + 1 for unit in way], dtype=np.float32),
        y=np.array([unit.layer for unit in way], dtype=np.float32),
        mode="lines+markers",
        line={"color": ACCENT, "width": 4},
        marker={"size": [0] + [11] * (len(way) - 1), "symbol": "arrow", "angleref": "previous", "color": ACCENT},
        hoverinfo="skip",
        showlegend=False,
    )


def _units(figure: go.Figure, num_tokens: int, depth: int, seen: set[Unit], labels: Labels) -> None:
    """A dot for every unit; those that the last one has heard of are darker."""
    units = [Unit(layer, token) for layer in range(depth + 1) for token in range(num_tokens)]
    figure.add_scatter(
        x=np.array([unit.token + 1 for unit in units], dtype=np.float32),
        y=np.array([unit.layer for unit in units], dtype=np.float32),
        mode="markers",
        marker={
            "size": 9 if depth <= 6 else 6,
            "color": ["rgba(110,118,124,1)" if unit in seen else "rgba(160,166,172,0.7)" for unit in units],
        },
        hovertemplate=labels["unit"] + "<extra></extra>",
        showlegend=False,
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

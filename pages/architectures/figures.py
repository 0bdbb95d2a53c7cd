"""Costs, times and path lengths of every architecture in pictures, and the networks they belong to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from plotly.subplots import make_subplots

from ui.compute.benchmark import Measurement
from ui.widgets import traces
from ui.widgets.figure_style import ACCENT, CATEGORIES, Labels, lay_out, mark_on_log_axis
from viz_core.lessons.architectures import ARCHITECTURES, LayerSizes, layer_cost, path_length


def milliseconds(measurements: Sequence[Measurement]) -> dict[str, Any]:
    """`y` and `error_y` of a scatter: the fastest run of each measurement taken, and the way to its slowest."""
    taken = [m for m in measurements if m.seconds is not None]
    fastest = np.array([m.seconds for m in taken], dtype=np.float32) * 1000
    slowest = np.array([m.slowest if m.slowest is not None else m.seconds for m in taken], dtype=np.float32) * 1000
    above = {"type": "data", "symmetric": False, "array": slowest - fastest, "arrayminus": np.zeros_like(fastest)}
    return {"y": fastest, "error_y": {**above, "thickness": 1, "width": 3}}


# Every chart of the chapter: the layer's colour, and a mark for readers who do not tell colours apart.
COLOURS = dict(zip(ARCHITECTURES, (ACCENT, *CATEGORIES[4:8]), strict=True))
SYMBOLS = dict(zip(ARCHITECTURES, ("circle", "square", "diamond", "diamond-open", "triangle-up"), strict=True))


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
        _line(figure, name, lengths, {"y": np.where(np.isfinite(values), values, np.nan)}, "%{y:,.4~g}", labels)
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
    return lay_out(
        figure,
        labels["tokens"],
        labels[shown],
        height=460,
        xaxis={"type": "log", "range": ends, "tickvals": lengths[::2], "ticktext": [f"{n:,}" for n in lengths[::2]]},
        yaxis={"type": "log", "exponentformat": "power", "dtick": 1 if shown in {"sequential", "path"} else 2},
        hovermode="x unified",
    )


def measured_figure(measurements: Sequence[Measurement], most: int, labels: Labels) -> go.Figure:
    """Milliseconds by n for every layer measured so far, on logarithmic axes that reach to `most` tokens."""
    figure = go.Figure()
    for name in ARCHITECTURES:
        own = [m for m in measurements if m.name == name and m.seconds is not None]
        _line(figure, name, [m.n for m in own], milliseconds(own), "%{y:.3~g} ms", labels)
    return _by_length(figure, most, labels["tokens"], labels["milliseconds"])


def _line(
    figure: go.Figure, name: str, lengths: Sequence[int], values: dict[str, Any], hovertemplate: str, labels: Labels
) -> None:
    """One layer by length, in its colour and marker; `values` holds y and its options."""
    figure.add_scatter(
        x=np.array(lengths, dtype=np.float32),
        **values,
        mode="lines+markers",
        name=labels[name],
        line={"color": COLOURS[name], "width": 2.5, "dash": "dash" if name == "dilated" else "solid"},
        marker={"size": 7, "symbol": SYMBOLS[name]},
        hovertemplate=hovertemplate,
    )


def _by_length(figure: go.Figure, most: int, x: str, y: str) -> go.Figure:
    ticks = [2**power for power in range(4, most.bit_length(), 2)]
    return lay_out(
        figure,
        x,
        y,
        height=420,
        xaxis={
            "type": "log",
            "range": [np.log10(13), np.log10(1.2 * most)],
            "tickvals": ticks,
            "ticktext": [f"{n:,}" for n in ticks],
        },
        yaxis={"type": "log", "exponentformat": "power", "dtick": 1},
        hovermode="x unified",
    )


def pairs_figure(matrices: Mapping[str, Float[np.ndarray, "n n"]], labels: Labels) -> go.Figure:
    """Path length between every pair of tokens, one map per layer on one colour scale; blank where there is no path."""
    columns = 3
    rows = -(-len(matrices) // columns)
    titles = [labels[name] for name in matrices]
    figure = make_subplots(rows, columns, subplot_titles=titles, vertical_spacing=0.16, horizontal_spacing=0.05)
    for i, values in enumerate(matrices.values()):
        tokens = np.arange(1, len(values) + 1, dtype=np.float32)
        traces.cells(
            figure,
            np.where(np.isfinite(values), values, np.nan),
            hover="%{y} → %{x}: %{z}",
            x=tokens,
            y=tokens,
            coloraxis="coloraxis",
            row=i // columns + 1,
            col=i % columns + 1,
        )
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


class Unit(NamedTuple):
    """A place in the network: layer 0 holds the tokens themselves."""

    layer: int
    token: int


Edge = tuple[Unit, Unit]


def connections(name: str, sizes: LayerSizes, num_layers: int) -> list[Edge]:
    """Every connection of a stack of layers, from input unit to output unit.

    Recurrence is one layer, whatever `num_layers`: its states are joined to each other.
    """
    if name not in ARCHITECTURES:
        raise ValueError(f"name: expected one of {', '.join(ARCHITECTURES)}, got {name!r}")
    tokens = range(sizes.n)
    if name == "recurrent":
        up = [(Unit(0, t), Unit(1, t)) for t in tokens]
        return up + [(Unit(1, t - 1), Unit(1, t)) for t in tokens if t]
    return [
        (Unit(layer - 1, t - back), Unit(layer, t))
        for layer in range(1, num_layers + 1)
        for t in tokens
        for back in _reads(name, layer, sizes)
        if 0 <= t - back < sizes.n
    ]


def shortest_path(name: str, first: int, last: int, sizes: LayerSizes) -> list[Unit]:
    """Units along a shortest way from token `first` to a unit at token `last`; empty where there is none.

    The first unit is the token itself; in a recurrent network, whose path is counted along its states, the state that
    takes the token in. A way of length L has L + 1 units.
    """
    length = path_length(name, first, last, sizes)
    if math.isinf(length):
        return []
    if name == "recurrent":
        return [Unit(1, t) for t in range(first, last + 1)]
    way, token = [Unit(0, first)], first
    for layer in range(1, int(length) + 1):
        token = _closest(name, layer, token, last, sizes)
        way.append(Unit(layer, token))
    return way


def _reads(name: str, layer: int, sizes: LayerSizes) -> range:
    """How far back a unit of this layer reads."""
    if name == "attention":
        return range(sizes.n)
    if name == "dilated":
        step = sizes.k ** (layer - 1)
        return range(0, min(sizes.k * step, sizes.n + step), step)
    return range(sizes.r if name == "restricted" else sizes.k)


def _closest(name: str, layer: int, token: int, last: int, sizes: LayerSizes) -> int:
    """The unit of this layer closest to the end from which the remaining layers reach it."""
    if name == "attention":
        return last
    if name != "dilated":
        return min(last, token + max(_reads(name, layer, sizes)))
    # D in base k: each layer with step k^(layer-1) covers one digit.
    step = sizes.k ** (layer - 1)
    return token + (last - token) // step % sizes.k * step

"""Figures that several chapters draw: ALiBi, probabilities, the logit lens, residuals, and maps between tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float

from ui.text.head_names import layer_place
from ui.widgets import traces
from ui.widgets.figure_style import (
    ACCENT,
    CATEGORIES,
    SIGNED_SCALE,
    WEIGHTS_SCALE,
    Labels,
    escape_labels,
    lay_out,
    named_bars,
    token_ticks,
)


def slopes_figure(slopes: Float[np.ndarray, " heads"], head: int, labels: Labels) -> go.Figure:
    """The slope of each head on a logarithmic axis, with the opened head in the accent colour."""
    colours = [ACCENT if i == head else CATEGORIES[-1] for i in range(len(slopes))]
    figure = traces.bars(
        go.Figure(),
        [str(i + 1) for i in range(len(slopes))],
        slopes,
        colours,
        text=[f"{slope:.3g}" for slope in slopes] if len(slopes) <= 8 else None,  # more would be rotated
        hover=f"{labels['head']} %{{x}}: %{{y:.5f}}",
    )
    axes: dict[str, Any] = {"xaxis": {"type": "category"}, "yaxis": {"type": "log", "dtick": 1}}
    return lay_out(figure, labels["head"], labels["slope"], height=300, **axes)


def penalty_figure(bias: Float[np.ndarray, "queries keys"], labels: Labels) -> go.Figure:
    """The bias map of one head, from 0 on the diagonal down."""
    limit = max(1e-6, float(-bias.min()))
    n = np.arange(1, len(bias) + 1)
    hover = f"{labels['query']} %{{y}} → {labels['key']} %{{x}}: %{{z:.4f}}"
    figure = traces.cells(go.Figure(), bias, x=n, y=n, limit=limit, bar=labels["added"], hover=hover)
    return lay_out(figure, labels["keys"], labels["queries"], height=300, yaxis={"autorange": "reversed"})


def bars_figure(
    names: Sequence[str], probabilities: Sequence[float], chosen: str | None, title: str, labels: Labels
) -> go.Figure:
    """Probabilities as bars, the largest on top; the one that was chosen in the accent colour.

    Args:
        names: each once; two words that look alike are told apart by their place.
        title: of the vertical axis.
    """
    axis = named_bars(names)
    colours = [ACCENT if name == chosen else CATEGORIES[-1] for name in names]
    beside = [f"{probability:.3f}" for probability in probabilities]
    figure = traces.bars(
        go.Figure(), probabilities, axis["tickvals"], colours, across=True, beside=beside, hover="%{x:.5f}"
    )
    room = {"range": [0, max(probabilities) * 1.15]}
    return lay_out(figure, labels["probability"], title, height=90 + 28 * len(names), xaxis=room, yaxis=axis)


def lens_figure(
    tokens: Sequence[Sequence[str]],
    probabilities: Float[np.ndarray, "layers places"],
    chosen: Float[np.ndarray, "layers places"],
    columns: Sequence[str],
    title: str,
    labels: Labels,
    layers_across: bool = False,
) -> go.Figure:
    """Figure of the most likely token of each layer and position, coloured by its probability.

    Args:
        tokens: of what enters, then of each layer.
        chosen: the probability of the token that the model chose.
        columns: label of each position.
        title: what the positions are.
        labels: names "input", "said", "probability" and "read-after".
        layers_across: layers as columns and positions as rows, which a phone can show where layers are few.
    """
    rows = [labels["input"], *(layer_place(i) for i in range(1, len(tokens)))]
    places, text = list(range(len(columns))), np.array([escape_labels(list(row)) for row in tokens], dtype=object)
    figure = traces.cells(
        go.Figure(),
        probabilities.T if layers_across else probabilities,
        x=rows if layers_across else places,
        y=places if layers_across else rows,
        written=(text.T if layers_across else text).tolist(),
        textfont={"size": 12},
        customdata=(chosen.T if layers_across else chosen).astype(np.float32),
        gap=1,
        bar=labels["probability"],
        hover=f"%{{text}}: %{{z:.3f}}<br>{labels['said']}: %{{customdata:.3f}}",
    )
    ticks, layers = token_ticks(columns), labels["read-after"]
    if layers_across:
        axes: dict[str, Any] = {"xaxis": {"side": "top"}, "yaxis": {**ticks, "autorange": "reversed"}}
        return lay_out(figure, layers, title, height=120 + 30 * len(columns), **axes)
    axes = {"xaxis": {**ticks, "tickangle": -45}, "yaxis": {"autorange": "reversed"}}
    return lay_out(figure, title, layers, height=120 + 44 * len(rows), **axes)


def residual_figure(residuals: Mapping[str, float], threshold: float, title: str, labels: Labels) -> go.Figure:
    """A number for each of several things on a logarithmic axis, those above the threshold in the accent colour.

    0 is drawn at the rounding error of float32.
    """
    names = list(residuals)[::-1]
    values = [max(residuals[name], 2**-23) for name in names]
    figure = traces.bars(
        go.Figure(),
        values,
        [labels[name] for name in names],
        [ACCENT if value > threshold else CATEGORIES[-1] for value in values],
        across=True,
        beside=[f"{residuals[name]:.2g}" for name in names],
        hover="%{y}: %{text}",
    )
    axis = {"type": "log", "range": [-8, 1.6], "exponentformat": "power", "dtick": 2}
    return lay_out(figure, title, "", height=80 + 30 * len(names), xaxis=axis)


SCORE_LIMIT = 4.0  # a score 4 higher is a weight 55 times as large; beyond it colours no longer change


def scale_of(shown: str) -> tuple[str, float, float]:
    """(colour scale, lowest, highest) of "added", "scores" or "weights", the same for every input."""
    return (WEIGHTS_SCALE, 0.0, 1.0) if shown == "weights" else (SIGNED_SCALE, -SCORE_LIMIT, SCORE_LIMIT)


def token_map(values: Float[np.ndarray, "n n"], tokens: Sequence[str], shown: str, labels: Labels) -> go.Figure:
    """A map with its tokens along both sides and the colour bar above it."""
    # Above the map and not beside it: on a phone the tokens need the width.
    bar = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "thickness": 10}
    title = {"text": labels[shown], "side": "top"}
    figure = go.Figure(token_heatmap(values, shown)).update_traces(colorbar={"title": title, **bar}, xgap=1, ygap=1)
    ticks = {"showticklabels": len(tokens) <= 32, **token_ticks(tokens)}  # more would run into each other
    axes: dict[str, Any] = {"xaxis": {"tickangle": -45, **ticks}, "yaxis": {"autorange": "reversed", **ticks}}
    height = max(300, min(560, 180 + 24 * len(tokens)))
    return lay_out(figure, labels["keys"], labels["queries"], height=height, **axes)


def token_heatmap(values: Float[np.ndarray, "n n"], shown: str, showscale: bool = True) -> go.Heatmap:
    """The map alone; the pointer reads query, key and value."""
    colours, low, high = scale_of(shown)
    return go.Heatmap(
        z=np.asarray(values, dtype=np.float32),
        colorscale=colours,
        zmin=low,
        zmax=high,
        showscale=showscale,
        hovertemplate="%{y} → %{x}: %{z:.3f}<extra></extra>",
    )

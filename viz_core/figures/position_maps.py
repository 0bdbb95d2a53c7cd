"""Score maps under each scheme: small ones side by side on one colour scale, and a large one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float

from viz_core.figures.style import SIGNED_SCALE, WEIGHTS_SCALE, escape_labels, lay_out

Labels = Mapping[str, str]
SCORE_LIMIT = 4.0  # a score 4 higher is a weight 55 times as large; beyond it colours no longer change


def scale_of(shown: str) -> tuple[str, float, float]:
    """(colour scale, lowest, highest) of "added", "scores" or "weights", the same for every scheme and input."""
    if shown == "weights":
        return WEIGHTS_SCALE, 0.0, 1.0
    return SIGNED_SCALE, -SCORE_LIMIT, SCORE_LIMIT


def small_map(values: Float[np.ndarray, "n n"], tokens: Sequence[str], shown: str, labels: Labels) -> go.Figure:
    """One of many: no ticks, no colour bar; the pointer reads query, key and value."""
    figure = go.Figure(_heatmap(values, tokens, shown))
    figure.update_xaxes(showticklabels=False, ticks="", title_standoff=4)
    figure.update_yaxes(showticklabels=False, ticks="", title_standoff=4, autorange="reversed")
    lay_out(figure, labels["keys"], labels["queries"], height=156)
    figure.update_layout(margin={"l": 2, "r": 2, "t": 2, "b": 2}, font={"size": 11})
    figure.update_traces(showscale=False)
    return figure


def large_map(values: Float[np.ndarray, "n n"], tokens: Sequence[str], shown: str, labels: Labels) -> go.Figure:
    """One scheme with its tokens along both sides and the colour bar."""
    figure = go.Figure(_heatmap(values, tokens, shown))
    ticks = {"tickmode": "array", "tickvals": list(range(len(tokens))), "ticktext": escape_labels(list(tokens))}
    if len(tokens) > 32:  # labels would run into each other
        ticks = {}
    figure.update_traces(colorbar={"title": labels[shown], "thickness": 12}, xgap=1, ygap=1)
    figure.update_xaxes(tickangle=-45, **ticks)
    figure.update_yaxes(autorange="reversed", **ticks)
    return lay_out(figure, labels["keys"], labels["queries"], height=max(300, min(560, 130 + 24 * len(tokens))))


def scale_strip(shown: str, labels: Labels) -> go.Figure:
    """The one colour scale that all small maps share."""
    colours, low, high = scale_of(shown)
    steps = np.linspace(low, high, 129, dtype=np.float32)
    figure = go.Figure(
        go.Heatmap(z=steps[None], x=steps, colorscale=colours, zmin=low, zmax=high, showscale=False, hoverinfo="x")
    )
    figure.update_yaxes(visible=False)
    lay_out(figure, labels[shown], "", height=88)
    return figure.update_layout(margin={"l": 10, "r": 10, "t": 4, "b": 54})


def _heatmap(values: Float[np.ndarray, "n n"], tokens: Sequence[str], shown: str) -> go.Heatmap:
    colours, low, high = scale_of(shown)
    names = np.array(escape_labels(list(tokens)), dtype=object)
    pairs = np.stack(np.broadcast_arrays(names[:, None], names[None]), axis=-1)
    return go.Heatmap(
        z=np.asarray(values, dtype=np.float32),
        customdata=pairs,
        colorscale=colours,
        zmin=low,
        zmax=high,
        hovertemplate="%{customdata[0]} → %{customdata[1]}: %{z:.3f}<extra></extra>",
    )

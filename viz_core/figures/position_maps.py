"""Score maps under each scheme: small ones side by side on one colour scale, and a large one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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


def small_maps(
    maps: Mapping[str, Float[np.ndarray, "n n"]], tokens: Sequence[str], shown: str, labels: Labels
) -> dict[str, go.Figure]:
    """One figure a map: no ticks, no colour bar; the pointer reads query, key and value."""
    frame = lay_out(go.Figure(), labels["keys"], labels["queries"], height=156)
    # Tokens stand on the axes, unseen: the pointer reads them there, and no cell has to carry its own.
    frame.update_xaxes(showticklabels=False, ticks="", title_standoff=4, **_token_ticks(tokens))
    frame.update_yaxes(showticklabels=False, ticks="", title_standoff=4, autorange="reversed", **_token_ticks(tokens))
    frame.update_layout(margin={"l": 2, "r": 2, "t": 2, "b": 2}, font={"size": 11})
    layout = frame.to_dict()["layout"]  # laid out once: that takes five times as long as a figure
    layout.pop("template", None)
    return {name: go.Figure(_heatmap(values, shown, showscale=False), layout=layout) for name, values in maps.items()}


def large_map(values: Float[np.ndarray, "n n"], tokens: Sequence[str], shown: str, labels: Labels) -> go.Figure:
    """One scheme with its tokens along both sides and the colour bar."""
    figure = go.Figure(_heatmap(values, shown))
    # Above the map and not beside it: on a phone the tokens need the width.
    bar = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "thickness": 10}
    figure.update_traces(colorbar={"title": {"text": labels[shown], "side": "top"}, **bar}, xgap=1, ygap=1)
    crowded = len(tokens) > 32  # labels would run into each other
    figure.update_xaxes(tickangle=-45, showticklabels=not crowded, **_token_ticks(tokens))
    figure.update_yaxes(autorange="reversed", showticklabels=not crowded, **_token_ticks(tokens))
    return lay_out(figure, labels["keys"], labels["queries"], height=max(300, min(560, 180 + 24 * len(tokens))))


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


def _token_ticks(tokens: Sequence[str]) -> dict[str, Any]:
    return {"tickmode": "array", "tickvals": list(range(len(tokens))), "ticktext": escape_labels(list(tokens))}


def _heatmap(values: Float[np.ndarray, "n n"], shown: str, showscale: bool = True) -> go.Heatmap:
    colours, low, high = scale_of(shown)
    return go.Heatmap(
        z=np.asarray(values, dtype=np.float32),
        colorscale=colours,
        zmin=low,
        zmax=high,
        showscale=showscale,
        hovertemplate="%{y} → %{x}: %{z:.3f}<extra></extra>",
    )

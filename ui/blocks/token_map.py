"""Maps between tokens, with the tokens along both sides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float

from ui.widgets.figure_style import SIGNED_SCALE, WEIGHTS_SCALE, Labels, escape_labels, lay_out

SCORE_LIMIT = 4.0  # a score 4 higher is a weight 55 times as large; beyond it colours no longer change


def scale_of(shown: str) -> tuple[str, float, float]:
    """(colour scale, lowest, highest) of "added", "scores" or "weights", the same for every input."""
    if shown == "weights":
        return WEIGHTS_SCALE, 0.0, 1.0
    return SIGNED_SCALE, -SCORE_LIMIT, SCORE_LIMIT


def token_map(values: Float[np.ndarray, "n n"], tokens: Sequence[str], shown: str, labels: Labels) -> go.Figure:
    """A map with its tokens along both sides and the colour bar above it."""
    figure = go.Figure(token_heatmap(values, shown))
    # Above the map and not beside it: on a phone the tokens need the width.
    bar = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "thickness": 10}
    figure.update_traces(colorbar={"title": {"text": labels[shown], "side": "top"}, **bar}, xgap=1, ygap=1)
    crowded = len(tokens) > 32  # labels would run into each other
    return lay_out(
        figure,
        labels["keys"],
        labels["queries"],
        height=max(300, min(560, 180 + 24 * len(tokens))),
        xaxis={"tickangle": -45, "showticklabels": not crowded, **token_ticks(tokens)},
        yaxis={"autorange": "reversed", "showticklabels": not crowded, **token_ticks(tokens)},
    )


def token_ticks(tokens: Sequence[str]) -> dict[str, Any]:
    """An axis labelled by tokens."""
    return {"tickmode": "array", "tickvals": list(range(len(tokens))), "ticktext": escape_labels(list(tokens))}


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

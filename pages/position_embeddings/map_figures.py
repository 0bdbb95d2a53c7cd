"""Small maps of every scheme side by side, and the one colour scale they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float

from ui.blocks.figures import scale_of, token_heatmap, token_ticks
from ui.widgets.figure_style import Labels, lay_out


def small_maps(
    maps: Mapping[str, Float[np.ndarray, "n n"]], tokens: Sequence[str], quantity: str, labels: Labels
) -> dict[str, go.Figure]:
    """One figure for each map, without ticks or colour bar; hovering shows query, key and value."""
    # Tick labels are hidden but read by the hover label, so no cell carries its own tokens.
    axis = {"showticklabels": False, "ticks": "", "title": {"standoff": 4}, **token_ticks(tokens)}
    return {
        name: lay_out(
            go.Figure(token_heatmap(values, quantity, showscale=False)),
            labels["keys"],
            labels["queries"],
            height=156,
            xaxis=axis,
            yaxis={**axis, "autorange": "reversed"},
            margin={"l": 2, "r": 2, "t": 2, "b": 2},
            font={"size": 11},
        )
        for name, values in maps.items()
    }


def scale_strip(quantity: str, labels: Labels) -> go.Figure:
    """The one colour scale that all small maps share."""
    colours, low, high = scale_of(quantity)
    steps = np.linspace(low, high, 129, dtype=np.float32)
    figure = go.Figure(
        go.Heatmap(z=steps[None], x=steps, colorscale=colours, zmin=low, zmax=high, showscale=False, hoverinfo="x")
    )
    return lay_out(
        figure, labels[quantity], "", height=88, yaxis={"visible": False}, margin={"l": 10, "r": 10, "t": 4, "b": 54}
    )

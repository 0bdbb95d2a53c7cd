"""Attention distances of heads, and the maps of the book's toy."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from plotly.subplots import make_subplots

from viz_core.figures.style import ACCENT, CATEGORIES, WEIGHTS_SCALE, Labels, lay_out


def ranges_figure(ranges: Float[np.ndarray, "heads"], even: float, chosen: int, labels: Labels) -> go.Figure:
    """A bar for each head, the open one in the accent colour; dotted, a head with uniform weights."""
    figure = go.Figure(
        go.Bar(
            x=np.arange(1, len(ranges) + 1, dtype=np.float32),
            y=ranges.astype(np.float32),
            marker={"color": [ACCENT if head == chosen else CATEGORIES[7] for head in range(len(ranges))]},
            hovertemplate="%{x}: %{y:.2f}<extra></extra>",
        )
    )
    figure.add_hline(y=even, line={"color": "rgba(128,128,128,0.8)", "dash": "dot"})
    return lay_out(figure, labels["head"], labels["range"], 260, xaxis={"dtick": max(1, len(ranges) // 16)})


def toy_figure(weights: Float[np.ndarray, "rows heads queries keys"], labels: Labels) -> go.Figure:
    """A small map for each head (across) of each batch row (down): queries down, keys across."""
    rows, heads, queries, keys = weights.shape
    titles = [labels["head-number"].format(head=head + 1) for head in range(heads)] + [""] * heads * (rows - 1)
    figure = make_subplots(
        rows, heads, subplot_titles=titles, shared_xaxes=True, shared_yaxes=True, horizontal_spacing=0.02
    )
    for row in range(rows):
        for head in range(heads):
            figure.add_heatmap(
                x=np.arange(1, keys + 1),
                y=np.arange(1, queries + 1),
                z=weights[row, head].astype(np.float32),
                zmin=0,
                zmax=1,
                colorscale=WEIGHTS_SCALE,
                showscale=False,
                xgap=1,
                ygap=1,
                hovertemplate="%{y}, %{x}: %{z:.3f}<extra></extra>",
                row=row + 1,
                col=head + 1,
            )
    axis = {"showgrid": False, "zeroline": False}
    lay_out(figure, "", "", 330, xaxis=axis, yaxis={"autorange": "reversed", **axis})
    figure.update_xaxes(title=labels["key"], row=rows, col=(heads + 1) // 2)
    for row in range(rows):
        figure.update_yaxes(title=labels["batch-row"].format(row=row + 1), row=row + 1, col=1)
    return figure

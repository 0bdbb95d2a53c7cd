"""Figures of ALiBi: the slope of each head, and what one head adds to the scores."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float

from ui.widgets.figure_style import ACCENT, CATEGORIES, SIGNED_SCALE, Labels, lay_out


def slopes_figure(slopes: Float[np.ndarray, " heads"], head: int, labels: Labels) -> go.Figure:
    """The slope of each head on a logarithmic axis, with the opened head in the accent colour."""
    colours = [ACCENT if i == head else CATEGORIES[-1] for i in range(len(slopes))]
    figure = go.Figure(
        go.Bar(
            x=[str(i + 1) for i in range(len(slopes))],
            y=slopes.astype(np.float32),
            marker={"color": colours},
            text=[f"{slope:.3g}" for slope in slopes] if len(slopes) <= 8 else None,  # more would be rotated
            hovertemplate=f"{labels['head']} %{{x}}: %{{y:.5f}}<extra></extra>",
        )
    )
    return lay_out(
        figure,
        labels["head"],
        labels["slope"],
        height=300,
        xaxis={"type": "category"},
        yaxis={"type": "log", "dtick": 1},
    )


def penalty_figure(bias: Float[np.ndarray, "queries keys"], labels: Labels) -> go.Figure:
    """The bias map of one head, from 0 on the diagonal down."""
    limit = max(1e-6, float(-bias.min()))
    n = np.arange(1, len(bias) + 1)
    figure = go.Figure(
        go.Heatmap(
            z=bias.astype(np.float32),
            x=n,
            y=n,
            colorscale=SIGNED_SCALE,
            zmin=-limit,
            zmax=limit,
            hovertemplate=f"{labels['query']} %{{y}} → {labels['key']} %{{x}}: %{{z:.4f}}<extra></extra>",
            colorbar={"title": labels["added"], "thickness": 12},
        )
    )
    return lay_out(figure, labels["keys"], labels["queries"], height=300, yaxis={"autorange": "reversed"})

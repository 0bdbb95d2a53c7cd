"""Schemes that are a curve over the offset: ALiBi's penalties, T5's buckets, Shaw's clipping."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float, Int

from viz_core.figures.style import ACCENT, CATEGORIES, KEYS, QUERIES, SIGNED_SCALE, lay_out

Labels = Mapping[str, str]
# Shaw 2018, table 2: BLEU of English-German newstest 2013 by clipping distance k.
SHAW_BLEU = {0: 12.5, 1: 25.5, 2: 25.8, 4: 25.9, 16: 25.8, 64: 25.9, 256: 25.8}


def slopes_figure(slopes: Float[np.ndarray, "heads"], head: int, labels: Labels) -> go.Figure:
    """The slope of each head on a logarithmic axis, with the opened head in the accent colour."""
    colours = [ACCENT if i == head else CATEGORIES[-1] for i in range(len(slopes))]
    figure = go.Figure(
        go.Bar(
            x=[str(i + 1) for i in range(len(slopes))],
            y=slopes.astype(np.float32),
            marker={"color": colours},
            text=[f"{slope:.3g}" for slope in slopes] if len(slopes) <= 8 else None,  # more would stand on end
            hovertemplate=f"{labels['head']} %{{x}}: %{{y:.5f}}<extra></extra>",
        )
    )
    figure.update_yaxes(type="log", dtick=1)
    figure.update_xaxes(type="category")
    return lay_out(figure, labels["head"], labels["slope"], height=300)


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
    figure.update_yaxes(autorange="reversed")
    return lay_out(figure, labels["keys"], labels["queries"], height=300)


def bucket_figure(offsets: Int[np.ndarray, "n"], buckets: Int[np.ndarray, "n"], labels: Labels) -> go.Figure:
    """Which bucket each offset falls into; keys before the query in blue, after it in orange."""
    figure = go.Figure()
    sides = ((offsets <= 0, QUERIES, labels["before"]), (offsets > 0, KEYS, labels["after"]))
    for side, colour, name in sides:
        figure.add_scatter(
            x=offsets[side],
            y=buckets[side],
            mode="lines+markers",
            line={"color": colour, "shape": "hvh"},
            marker={"size": 4},
            name=name,
            hovertemplate=f"{labels['offset']} %{{x}}: {labels['bucket']} %{{y}}<extra></extra>",
        )
    return lay_out(figure, labels["signed-offset"], labels["bucket"], height=380)


def shaw_figure(max_distance: int, labels: Labels) -> go.Figure:
    """BLEU by clipping distance as published, with the distance chosen here marked."""
    distances = list(SHAW_BLEU)
    figure = go.Figure(
        go.Bar(
            x=[str(k) for k in distances],
            y=np.array(list(SHAW_BLEU.values()), dtype=np.float32),
            text=[f"{bleu:.1f}" for bleu in SHAW_BLEU.values()],
            marker={"color": [ACCENT if k == max_distance else CATEGORIES[-1] for k in distances]},
            hovertemplate="k = %{x}: %{y:.1f}<extra></extra>",
        )
    )
    figure.update_xaxes(type="category")
    return lay_out(figure, labels["clipping"], labels["bleu"], height=300)

"""Figures of the book's material: identity matrices, a hard and a soft weight."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from plotly.subplots import make_subplots

from ui.widgets.figure_style import ACCENT, CATEGORIES, KEYS, WEIGHTS_SCALE, Labels, lay_out

_GREY = CATEGORIES[7]


def identities_figure(weights: Sequence[Float[np.ndarray, "_ _"]], labels: Labels) -> go.Figure:
    """Maps of several sizes side by side, from 0 to 1."""
    titles = [labels["identity-of"].format(count=len(each)) for each in weights]
    figure = make_subplots(1, len(weights), subplot_titles=titles, horizontal_spacing=0.12)
    for column, each in enumerate(weights, start=1):
        figure.add_heatmap(
            z=each.astype(np.float32),
            zmin=0,
            zmax=1,
            colorscale=WEIGHTS_SCALE,
            showscale=False,
            hovertemplate=labels["looks-at"].format(query="%{y}", key="%{x}") + ": %{z:.6f}<extra></extra>",
            x=np.arange(1, len(each) + 1),
            y=np.arange(1, len(each) + 1),
            row=1,
            col=column,
        )
    return lay_out(
        figure,
        labels["as-key"],
        "",
        330,
        xaxis={"showgrid": False, "zeroline": False, "nticks": 6},
        yaxis={"autorange": "reversed", "showgrid": False, "zeroline": False, "nticks": 6},
    ).update_yaxes(title=labels["as-query"], col=1)


def gradient_figure(
    gaps: Float[np.ndarray, " gaps"],
    soft: Float[np.ndarray, " gaps"],
    hard: Float[np.ndarray, " gaps"],
    slope: Float[np.ndarray, " gaps"],
    labels: Labels,
) -> go.Figure:
    """Above, the weight of one of two keys by its lead in score, hard and soft; below, the slope of either."""
    figure = make_subplots(2, 1, shared_xaxes=True, row_heights=[0.6, 0.4], vertical_spacing=0.08)
    lines = (
        (hard, labels["hard"], {"color": _GREY, "dash": "dash", "shape": "hv"}, 1),
        (soft, labels["soft"], {"color": KEYS, "width": 3}, 1),
        (np.zeros_like(slope), labels["hard"], {"color": _GREY, "dash": "dash"}, 2),
        (slope, labels["soft"], {"color": ACCENT, "width": 3}, 2),
    )
    for y, name, line, row in lines:
        figure.add_scatter(
            x=gaps.astype(np.float32),
            y=y.astype(np.float32),
            mode="lines",
            name=name,
            line=line,
            showlegend=row == 1,
            hovertemplate="%{x:.2f}: %{y:.4g}<extra></extra>",
            row=row,
            col=1,
        )
    lay_out(figure, "", "", 360)
    figure.update_xaxes(title=labels["gap"], row=2)
    figure.update_yaxes(title=labels["weight"], row=1, range=[-0.05, 1.05])
    return figure.update_yaxes(title=labels["slope"], row=2, rangemode="tozero", nticks=4)

"""Kernels against the distance, and the error by their width."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from torch import Tensor

from pages.attention_pooling.fit_figures import TRUTH, to_array
from ui.widgets.figure_style import ACCENT, CATEGORIES, QUERIES, Labels, lay_out
from viz_core.lessons.attention_pooling.curve_fit import kernel_curves
from viz_core.lessons.attention_pooling.kernel_width import WidthSearch


def kernels_figure(chosen: str, width: float, labels: Labels) -> go.Figure:
    """Every kernel at this width against the distance, the chosen one thick."""
    span = float(max(3 * width, 0.5))
    distances, curves = kernel_curves(width, span)
    figure = go.Figure()
    for (name, heights), colour in zip(curves.items(), CATEGORIES[2:], strict=False):
        figure.add_scatter(
            x=to_array(distances),
            y=to_array(heights),
            mode="lines",
            line={"color": ACCENT if name == chosen else colour, "width": 4 if name == chosen else 1.5},
            opacity=1 if name == chosen else 0.75,
            name=labels[name],
            hovertemplate=f"{labels[name]}: %{{x:.3f}} → %{{y:.4f}}<extra></extra>",
        )
    return lay_out(figure, labels["distance"], labels["nearness"], 430, yaxis={"range": [-0.04, 1.08]})


def width_figure(search: WidthSearch, true_errors: Float[Tensor, " widths"], width: float, labels: Labels) -> go.Figure:
    """Leave-one-out error by width with its minimum, and the error against the truth, which no data can show."""
    figure = go.Figure()
    for errors, colour, dash, name in (
        (search.errors, ACCENT, "solid", "left-out"),
        (true_errors, TRUTH, "dash", "true-error"),
    ):
        figure.add_scatter(
            x=to_array(search.widths),
            y=to_array(errors),
            mode="lines",
            line={"color": colour, "dash": dash, "width": 2.5},
            name=labels[name],
            hovertemplate=labels["width-error"].format(width="%{x:.3f}", error="%{y:.4f}") + "<extra></extra>",
        )
    figure.add_scatter(
        x=np.array([search.best], dtype=np.float32),
        y=np.array([search.error], dtype=np.float32),
        mode="markers",
        marker={"color": ACCENT, "size": 15, "symbol": "star"},
        name=labels["best"],
        hovertemplate=labels["width-error"].format(width="%{x:.3f}", error="%{y:.4f}") + "<extra></extra>",
    )
    figure.add_vline(x=width, line={"color": QUERIES, "width": 1.5, "dash": "dash"})
    ticks = [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10]
    return lay_out(
        figure,
        labels["width"],
        labels["error"],
        420,
        xaxis={"type": "log", "tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]},
        yaxis={"rangemode": "tozero"},
    )

"""Bar charts of residuals."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go

from ui.widgets.figure_style import ACCENT, CATEGORIES, Labels, lay_out


def residual_figure(residuals: Mapping[str, float], threshold: float, title: str, labels: Labels) -> go.Figure:
    """A number for each of several things on a logarithmic axis, those above the threshold in the accent colour.

    0 is drawn at the rounding error of float32.
    """
    names = list(residuals)[::-1]
    values = np.array([max(residuals[name], 2**-23) for name in names], dtype=np.float32)
    figure = go.Figure(
        go.Bar(
            x=values,
            y=[labels[name] for name in names],
            orientation="h",
            marker={"color": [ACCENT if value > threshold else CATEGORIES[-1] for value in values]},
            text=[f"{residuals[name]:.2g}" for name in names],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{y}: %{text}<extra></extra>",
        )
    )
    return lay_out(
        figure,
        title,
        "",
        height=80 + 30 * len(names),
        xaxis={"type": "log", "range": [-8, 1.6], "exponentformat": "power", "dtick": 2},
    )

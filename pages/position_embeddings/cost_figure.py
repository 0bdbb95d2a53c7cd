"""What each scheme costs, as lines over the size of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from ui.widgets.figure_style import CATEGORIES, Labels, lay_out


def cost_figure(
    lines: Mapping[str, tuple[Sequence[int], Sequence[int]]], x_title: str, y_title: str, labels: Labels
) -> go.Figure:
    """One line for each scheme on two logarithmic axes; schemes that cost 0 are left out."""
    figure = go.Figure()
    for i, (name, (xs, ys)) in enumerate(lines.items()):
        if not any(ys):
            continue
        figure.add_scatter(
            x=list(xs),
            y=np.array(ys, dtype=np.float32),
            name=labels[name],
            mode="lines+markers",
            line={"color": CATEGORIES[i % len(CATEGORIES)], "dash": "dot" if i >= len(CATEGORIES) else "solid"},
            hovertemplate="%{y:,.0f}",
        )
    return lay_out(
        figure,
        x_title,
        y_title,
        height=460,
        xaxis={"type": "log", "tickvals": list(xs), "ticktext": [f"{x:,}" for x in xs]},
        yaxis={"type": "log", "exponentformat": "power", "dtick": 1},
        hovermode="x unified",
    )

"""Attention masks of two architectures, side by side."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Bool
from plotly.subplots import make_subplots

from ui.widgets.figure_style import ACCENT, CATEGORIES, Labels, lay_out


def seen_figure(maps: Mapping[str, Bool[np.ndarray, "n n"]], source: int, labels: Labels) -> go.Figure:
    """Filled where a token (row) may look at another (column); a line parts the source from what is written."""
    figure = make_subplots(rows=1, cols=len(maps), subplot_titles=[labels[name] for name in maps], shared_yaxes=True)
    scale = [[0, "rgba(128,128,128,0.12)"], [1, ACCENT]]
    for column, seen in enumerate(maps.values(), start=1):
        places = list(range(1, len(seen) + 1))
        figure.add_trace(
            go.Heatmap(
                z=seen.astype(np.uint8),
                x=places,
                y=places,
                colorscale=scale,
                zmin=0,
                zmax=1,
                showscale=False,
                xgap=1,
                ygap=1,
                hovertemplate="%{y} → %{x}<extra></extra>",
            ),
            1,
            column,
        )
        line = {"color": CATEGORIES[1], "width": 2}
        figure.add_vline(x=source + 0.5, line=line, col=column)
        figure.add_hline(y=source + 0.5, line=line, col=column)
    lay_out(figure, labels["keys"], "", 340, xaxis={"tickmode": "linear", "dtick": 2})
    figure.update_yaxes(autorange="reversed", tickmode="linear", dtick=2)
    return figure.update_yaxes(title=labels["queries"], col=1)

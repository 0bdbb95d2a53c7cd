"""Attention distances of heads, and the maps of the book's toy."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from plotly.subplots import make_subplots

from ui.widgets.figure_style import ACCENT, CATEGORIES, WEIGHTS_SCALE, Labels, lay_out


def ranges_figure(
    ranges: Mapping[str, Float[np.ndarray, " heads"]], uniform: Mapping[str, float], chosen: int, labels: Labels
) -> go.Figure:
    """Two bars for each head, over all tokens and among words; dotted, a head with uniform weights.

    Args:
        ranges: by "all" and "words".
        uniform: likewise.
        chosen: the open head, whose bars have an outline.
    """
    figure = go.Figure()
    colours = {"all": CATEGORIES[7], "words": ACCENT}
    for name, distances in ranges.items():
        figure.add_bar(
            name=labels[f"{name}-tokens"],
            x=np.arange(1, len(distances) + 1, dtype=np.float32),
            y=distances.astype(np.float32),
            marker={
                "color": colours[name],
                "line": {"color": ACCENT, "width": [2.5 if head == chosen else 0 for head in range(len(distances))]},
            },
            hovertemplate="%{x}: %{y:.2f}",
        )
        figure.add_hline(y=uniform[name], line={"color": colours[name], "dash": "dot"})
    axis = {"dtick": max(1, len(ranges["all"]) // 16)}
    return lay_out(figure, labels["head"], labels["range"], 300, xaxis=axis)


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

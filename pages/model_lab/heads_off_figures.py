"""Effect of heads switched off: probabilities side by side, cosine distance of each token's state."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float

from ui.widgets.figure_style import ACCENT, CATEGORIES, Labels, escape_labels, lay_out
from viz_core.lab.heads_off import Change


def beside_figure(changes: Sequence[Change], title: str, labels: Labels) -> go.Figure:
    """Probabilities with all heads and without some, two bars a word, the likeliest on top.

    Args:
        title: of the vertical axis.
        labels: names "probability", "with-heads" and "without-heads".
    """
    places = [f"{place}" for place in range(len(changes))]
    figure = go.Figure(
        [
            go.Bar(
                x=np.array([getattr(change, when) for change in changes], dtype=np.float32),
                y=places,
                name=labels[name],
                orientation="h",
                marker={"color": colour},
                hovertemplate="%{x:.5f}<extra></extra>",
            )
            for when, name, colour in (("after", "without-heads", CATEGORIES[-1]), ("before", "with-heads", ACCENT))
        ]
    )
    names = escape_labels([change.label for change in changes])
    return lay_out(
        figure,
        labels["probability"],
        title,
        height=110 + 40 * len(changes),
        barmode="group",
        legend={"traceorder": "reversed"},
        yaxis={"type": "category", "autorange": "reversed", "tickmode": "array", "tickvals": places, "ticktext": names},
    )


def distances_figure(names: Sequence[str], distances: Float[np.ndarray, " tokens"], labels: Labels) -> go.Figure:
    """Cosine distance of each token's last state, one bar per token.

    Args:
        labels: names "token" and "distance".
    """
    places = list(range(len(names)))
    heights = distances.astype(np.float32)
    figure = go.Figure(go.Bar(x=places, y=heights, marker={"color": ACCENT}, hovertemplate="%{y:.4f}<extra></extra>"))
    ticks = {"tickmode": "array", "tickvals": places, "ticktext": escape_labels(list(names)), "tickangle": -45}
    return lay_out(figure, labels["token"], labels["distance"], height=320, xaxis=ticks if len(names) <= 64 else {})

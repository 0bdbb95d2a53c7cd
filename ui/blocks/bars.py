"""Probabilities as bars: the next words, the classes of a picture."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from ui.widgets.figure_style import ACCENT, CATEGORIES, Labels, escape_labels, lay_out


def bars_figure(
    names: Sequence[str], probabilities: Sequence[float], chosen: str | None, title: str, labels: Labels
) -> go.Figure:
    """Probabilities as bars, the largest on top; the one that was chosen in the accent colour.

    Args:
        names: each once; two words that look alike are told apart by their place.
        title: of the vertical axis.
    """
    places = [f"{place}" for place in range(len(names))]
    figure = go.Figure(
        go.Bar(
            x=np.array(probabilities, dtype=np.float32),
            y=places,
            orientation="h",
            marker={"color": [ACCENT if name == chosen else CATEGORIES[-1] for name in names]},
            text=[f"{probability:.3f}" for probability in probabilities],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{x:.5f}<extra></extra>",
        )
    )
    return lay_out(
        figure,
        labels["probability"],
        title,
        height=90 + 28 * len(names),
        xaxis={"range": [0, max(probabilities) * 1.15]},
        yaxis={
            "type": "category",
            "autorange": "reversed",
            "tickmode": "array",
            "tickvals": places,
            "ticktext": escape_labels(list(names)),
        },
    )

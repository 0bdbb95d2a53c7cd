"""Logit lens: the most likely token of each layer (rows) and position (columns)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float

from viz_core.figures.style import WEIGHTS_SCALE, Labels, escape_labels, lay_out


def lens_figure(
    tokens: Sequence[Sequence[str]],
    probabilities: Float[np.ndarray, "layers places"],
    chosen: Float[np.ndarray, "layers places"],
    columns: Sequence[str],
    title: str,
    labels: Labels,
) -> go.Figure:
    """Figure of the most likely token of each layer and position, coloured by its probability.

    Args:
        tokens: of what enters, then of each layer.
        chosen: the probability of the token that the model chose.
        columns: what stands under each column.
        title: what the columns are.
        labels: names "input", "layer", "said", "probability" and "read-after".
    """
    rows = [labels["input"], *(f"{labels['layer']} {i}" for i in range(1, len(tokens)))]
    places = list(range(len(columns)))
    figure = go.Figure(
        go.Heatmap(
            z=probabilities.astype(np.float32),
            y=rows,
            x=places,
            text=[escape_labels(list(row)) for row in tokens],
            texttemplate="%{text}",
            textfont={"size": 12},
            customdata=chosen.astype(np.float32),
            zmin=0,
            zmax=1,
            xgap=1,
            ygap=1,
            colorscale=WEIGHTS_SCALE,
            hovertemplate=f"%{{text}}: %{{z:.3f}}<br>{labels['said']}: %{{customdata:.3f}}<extra></extra>",
            colorbar={"title": labels["probability"], "thickness": 12},
        )
    )
    ticks = {"tickmode": "array", "tickvals": places, "ticktext": escape_labels(list(columns))}
    return lay_out(
        figure,
        title,
        labels["read-after"],
        height=120 + 44 * len(rows),
        xaxis={**ticks, "tickangle": -45},
        yaxis={"autorange": "reversed"},
    )

"""Logit lens: the most likely token of each layer and position."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float

from ui.text.head_names import layer_place
from ui.widgets.figure_style import WEIGHTS_SCALE, Labels, escape_labels, lay_out


def lens_figure(
    tokens: Sequence[Sequence[str]],
    probabilities: Float[np.ndarray, "layers places"],
    chosen: Float[np.ndarray, "layers places"],
    columns: Sequence[str],
    title: str,
    labels: Labels,
    layers_across: bool = False,
) -> go.Figure:
    """Figure of the most likely token of each layer and position, coloured by its probability.

    Args:
        tokens: of what enters, then of each layer.
        chosen: the probability of the token that the model chose.
        columns: label of each position.
        title: what the positions are.
        labels: names "input", "said", "probability" and "read-after".
        layers_across: layers as columns and positions as rows, which a phone can show where layers are few.
    """
    rows = [labels["input"], *(layer_place(i) for i in range(1, len(tokens)))]
    places, text = list(range(len(columns))), np.array([escape_labels(list(row)) for row in tokens], dtype=object)
    z, chosen = probabilities.astype(np.float32), chosen.astype(np.float32)
    figure = go.Figure(
        go.Heatmap(
            z=z.T if layers_across else z,
            x=rows if layers_across else places,
            y=places if layers_across else rows,
            text=(text.T if layers_across else text).tolist(),
            texttemplate="%{text}",
            textfont={"size": 12},
            customdata=chosen.T if layers_across else chosen,
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
    if layers_across:
        return lay_out(
            figure,
            labels["read-after"],
            title,
            height=120 + 30 * len(columns),
            xaxis={"side": "top"},
            yaxis={**ticks, "autorange": "reversed"},
        )
    return lay_out(
        figure,
        title,
        labels["read-after"],
        height=120 + 44 * len(rows),
        xaxis={**ticks, "tickangle": -45},
        yaxis={"autorange": "reversed"},
    )

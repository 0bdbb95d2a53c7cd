"""Attention distance and entropy of every head of a vision transformer, by layer."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float

from ui.text.head_names import head_place
from ui.widgets.figure_style import ACCENT, CATEGORIES, lay_out

Labels = Mapping[str, str]


def by_depth_figure(
    values: Float[np.ndarray, "layers heads"],
    uniform: float,
    opened: tuple[int, int],
    unit: str,
    labels: Labels,
) -> go.Figure:
    """A measure of every head by its layer; a line marks a head with uniform weights.

    Args:
        uniform: where that line is.
        opened: layer and head that is open, from 0, in the accent colour.
        unit: title of the vertical axis.
        labels: names "layer" and "head"; "uniform" says where the line is.
    """
    layers, heads = values.shape
    spread = (np.arange(heads) - (heads - 1) / 2) * (0.5 / max(1, heads - 1))
    colours = [
        ACCENT if (layer, head) == opened else CATEGORIES[-1] for layer in range(layers) for head in range(heads)
    ]
    sizes = [15 if (layer, head) == opened else 9 for layer in range(layers) for head in range(heads)]
    figure = go.Figure(
        go.Scatter(
            x=(np.arange(1, layers + 1)[:, None] + spread).ravel().astype(np.float32),
            y=values.ravel().astype(np.float32),
            customdata=np.stack(np.meshgrid(np.arange(heads), np.arange(layers)), axis=-1).reshape(-1, 2)[:, ::-1] + 1,
            mode="markers",
            marker={"color": colours, "size": sizes},
            hovertemplate=head_place("%{customdata[0]}", "%{customdata[1]}") + ": %{y:.2f}<extra></extra>",
            showlegend=False,
        )
    )
    figure.add_scatter(
        x=np.array([0.4, layers + 0.6], dtype=np.float32),
        y=np.array([uniform, uniform], dtype=np.float32),
        mode="lines",
        line={"color": "rgba(128,128,128,0.9)", "dash": "dot"},
        name=labels["uniform"],
        showlegend=True,
        hoverinfo="skip",
    )
    return lay_out(
        figure,
        labels["layer"],
        unit,
        height=320,
        xaxis={"dtick": 1, "range": [0.4, layers + 0.6]},
        yaxis={"rangemode": "tozero"},
    )

"""Figures of a model's own position scheme, from its parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from torch import Tensor

from ui.widgets.figure_style import ACCENT, lay_out, mark_on_log_axis
from ui.widgets.heatmap import Heatmap, signed_heatmap, to_pixels
from viz_core.lessons.model_lab.position_measures import MOST_ROWS, cosines

Labels = Mapping[str, str]

_EXACT_CELLS = 2**18  # larger tables are sent in 8 bits a cell


def table_heatmap(table: Float[Tensor, "positions width"], labels: Labels) -> Heatmap:
    """The first rows of a table as the model has it; its darkest colour is what 99.5 % of its numbers stay below."""
    rows = table[:MOST_ROWS]
    flat = rows.abs().flatten()
    limit = float(flat.kthvalue(max(1, math.ceil(0.995 * flat.numel()))).values) or 1.0
    if rows.numel() <= _EXACT_CELLS:
        return signed_heatmap(rows, labels["position"], labels["dimension"], limit=limit)
    return Heatmap(to_pixels(rows, -limit, limit), -limit, limit, labels["position"], labels["dimension"], digits=4)


def cosine_heatmap(table: Float[Tensor, "positions width"], labels: Labels) -> Heatmap:
    """Cosine similarity of the rows of a table."""
    return signed_heatmap(cosines(table), labels["position_i"], labels["position_j"], limit=1.0, square=True)


def wavelengths_figure(frequencies: Float[np.ndarray, " pairs"], room: int | None, labels: Labels) -> go.Figure:
    """Tokens until each rotary pair has gone round once, on a log axis; a line where the model's room ends."""
    waves = 2 * np.pi / np.maximum(frequencies.astype(np.float64), 1e-12)
    figure = go.Figure(
        go.Scatter(
            x=waves.astype(np.float32),
            y=np.arange(len(waves), dtype=np.int32),
            mode="lines+markers",
            line={"color": ACCENT},
            marker={"size": 5},
            hovertemplate=labels["pair-number"].format(pair="%{y}") + ": %{x:,.1f}<extra></extra>",
        )
    )
    if room is not None:
        mark_on_log_axis(figure, float(room), labels["room"])
    return lay_out(figure, labels["wavelength"], labels["pair"], height=340, xaxis={"type": "log", "dtick": 1})


def bias_figure(bias: Float[np.ndarray, "heads offsets"], reach: int, head: int, labels: Labels) -> go.Figure:
    """The bias by offset: one head in the accent colour, the others behind it."""
    offsets = np.arange(-reach, bias.shape[1] - reach, dtype=np.int32)
    figure = go.Figure()
    for i in [*(i for i in range(len(bias)) if i != head), head]:
        figure.add_scatter(
            x=offsets,
            y=bias[i].astype(np.float32),
            mode="lines",
            line={"color": ACCENT if i == head else "rgba(128,128,128,0.45)", "width": 3 if i == head else 1},
            name=f"{labels['head']} {i + 1}",
            showlegend=False,
            hovertemplate=f"{labels['head']} {i + 1}, %{{x}}: %{{y:.3f}}<extra></extra>",
        )
    return lay_out(figure, labels["signed-offset"], labels["added"], height=340)

"""Residuals after rounding."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float

from ui.widgets.figure_style import ACCENT, CATEGORIES, Labels, lay_out


def residual_figure(residual: Float[np.ndarray, " positions"], bound: float, labels: Labels) -> go.Figure:
    """|M p_i - p_(i + offset)| for each position, under what rounding may cost."""
    figure = go.Figure()
    lifted, floor = lift_zeros(residual)
    figure.add_scatter(
        x=np.arange(len(residual), dtype=np.float32),
        y=lifted,
        mode="markers",
        marker={"size": 4, "color": ACCENT, "opacity": 0.6},
        name=labels["residual"],
        customdata=residual.astype(np.float32),
        hovertemplate="i = %{x}: %{customdata:.3g}<extra></extra>",
    )
    figure.add_scatter(
        x=np.array([0, len(residual) - 1], dtype=np.float32),
        y=np.full(2, bound, dtype=np.float32),
        mode="lines",
        line={"color": CATEGORIES[4], "dash": "dash"},
        name=labels["bound"],
        hovertemplate="%{y:.3g}<extra></extra>",
    )
    return lay_out(figure, labels["position"], labels["largest-residual"], 360, yaxis=_log_y(floor, bound, labels))


def lift_zeros(values: Float[np.ndarray, " n"]) -> tuple[Float[np.ndarray, " n"], float]:
    """Values for a log axis: exact zeros at a floor, a power of ten below all others, which is returned too."""
    above = values[values > 0]
    floor = 10.0 ** (math.floor(math.log10(above.min())) - 1) if len(above) else 1e-18
    return np.where(values == 0, floor, values).astype(np.float32), floor


def _log_y(floor: float, top: float, labels: Labels) -> dict[str, Any]:
    """A log axis from the floor, where exact zeros lie, to above `top`."""
    low, high = round(math.log10(floor)), math.ceil(math.log10(top))
    every = max(1, math.ceil((high - low) / 7))
    powers = list(range(low + every, high + 1, every))
    return {
        "type": "log",
        "range": [low - 0.3, math.log10(top) + 0.5],
        "tickvals": [floor, *(10.0**power for power in powers)],
        "ticktext": [labels["zero"], *(f"10<sup>{power}</sup>".replace("-", "−") for power in powers)],
    }

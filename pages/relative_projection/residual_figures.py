"""Residuals after rounding, and after fitting the matrix to a table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float, Int

from ui.widgets.figure_style import ACCENT, CATEGORIES, Labels, lay_out
from viz_core.lessons.relative_projection.fitted_projection import FitErrors

Curve = tuple[Int[np.ndarray, " windows"], Float[np.ndarray, " windows"], Float[np.ndarray, " windows"]]
TYPE_COLOURS = dict(zip(("float64", "float32", "bfloat16", "float16"), CATEGORIES[2:6], strict=True))


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


def fit_figure(fits: Sequence[FitErrors], longest: float, labels: Labels) -> go.Figure:
    """Errors of a fitted matrix by how far the table it saw reaches; a line where the slowest hand has gone round."""
    figure = go.Figure()
    reach = np.array([fit.reach for fit in fits], dtype=np.float32)
    errors = {name: np.array([getattr(fit, name) for fit in fits]) for name in ("seen", "unseen", "difference")}
    _, floor = lift_zeros(np.concatenate(list(errors.values())))
    for (name, values), colour in zip(errors.items(), CATEGORIES[2:5], strict=True):
        figure.add_scatter(
            x=reach,
            y=np.where(values > 0, values, floor).astype(np.float32),
            mode="lines+markers",
            line={"color": colour},
            marker={"size": 8},
            name=labels[name],
            customdata=values.astype(np.float32),
            hovertemplate="%{x:,}: %{customdata:.2g}<extra></extra>",
        )
    figure.add_vline(x=longest, line={"color": CATEGORIES[7], "dash": "dot"})
    top = max(float(values.max()) for values in errors.values())
    return lay_out(
        figure,
        labels["reach"],
        labels["error"],
        400,
        xaxis={"type": "log", "tickvals": reach, "ticktext": [f"{int(value):,}" for value in reach]},
        yaxis=_log_y(floor, top, labels),
    )


def precision_figure(curves: Mapping[str, Curve], labels: Labels) -> go.Figure:
    """The largest residual around each position: angles in the type (solid), and rounded to it once (dotted).

    Args:
        curves: by number type: positions, residuals rounded once, residuals all in the type.
    """
    figure = go.Figure()
    _, floor = lift_zeros(np.concatenate([np.concatenate(curve[1:]) for curve in curves.values()]))
    for name, (positions, rounded, naive) in curves.items():
        for values, dash, label in ((naive, "solid", "naive"), (rounded, "dot", "rounded")):
            figure.add_scatter(
                x=positions.astype(np.float32),
                y=np.where(values == 0, floor, values).astype(np.float32),
                mode="lines",
                line={"color": TYPE_COLOURS[name], "dash": dash, "width": 2},
                name=name,
                legendgroup=name,
                showlegend=label == "naive",
                hovertemplate=f"{name}, {labels[label]}, %{{x:,}}: %{{y:.2g}}<extra></extra>",
            )
    ticks = [10**k for k in range(6)]
    return lay_out(
        figure,
        labels["position"],
        labels["largest-residual"],
        420,
        xaxis={"type": "log", "range": [-0.05, 5.15], "tickvals": ticks, "ticktext": [f"{tick:,}" for tick in ticks]},
        yaxis=_log_y(floor, 2.0, labels),
    )


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

"""A small matrix as a heatmap with its numbers in the cells; what is masked stays an empty frame with a faint 0."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Bool, Float

from ui.widgets.figure_style import CATEGORIES, KEYS, QUERIES, SIGNED_SCALE, WEIGHTS_SCALE, lay_out

EMPTY = "rgba(128,128,128,0.16)"  # of masked cells, in light and in dark


def number_grid(
    values: Float[np.ndarray, "rows columns"],
    rows: Sequence[str],
    columns: Sequence[str],
    x: str,
    y: str,
    *,
    shown: Bool[np.ndarray, "rows columns"] | None = None,
    limit: float | None = None,
    digits: int | None = None,
    cell: int = 38,
    row_colour: str = QUERIES,
    column_colour: str = KEYS,
) -> go.Figure:
    """Values in rows and columns, the first row at the top.

    Args:
        shown: where a cell is drawn; the others are masked and weigh 0. NaN stays empty, without a number.
        limit: None for weights, 0 to 1; else signed values around zero, coloured to +-limit.
        digits: decimals in the cells, as many as have room unless given; 0 writes no text.
        cell: height of a row in pixels.
    """
    drawn = values.astype(np.float32).copy()
    size = 12 if len(columns) <= 6 else 10 if len(columns) <= 8 else 9
    digits = (3 if len(columns) <= 6 else 2) if digits is None else digits
    if shown is not None:
        drawn[~shown] = np.nan
    text = [[_write(value, digits) for value in row] for row in drawn.tolist()]
    figure = go.Figure(
        go.Heatmap(
            z=drawn,
            x=list(range(len(columns))),
            y=list(range(len(rows))),
            text=text,
            texttemplate="%{text}" if digits else None,
            textfont={"size": size},
            customdata=np.array([[f"{r}, {c}" for c in columns] for r in rows]),
            hovertemplate="%{customdata}: %{z:.5g}<extra></extra>",
            hoverongaps=False,
            colorscale=WEIGHTS_SCALE if limit is None else SIGNED_SCALE,
            zmin=0 if limit is None else -limit,
            zmax=1 if limit is None else limit,
            showscale=False,
            xgap=2,
            ygap=2,
        )
    )
    empty = np.isnan(drawn)
    if empty.any():
        figure.add_heatmap(
            z=np.where(empty, np.float32(0), np.float32(np.nan)),
            x=list(range(len(columns))),
            y=list(range(len(rows))),
            text=np.where(empty & ~np.isnan(values) & (digits > 0), "0", ""),
            texttemplate="%{text}",
            textfont={"size": size, "color": CATEGORIES[7]},
            colorscale=[[0, EMPTY], [1, EMPTY]],
            showscale=False,
            hoverinfo="skip",
            xgap=2,
            ygap=2,
        )
    axis = {"showgrid": False, "zeroline": False, "fixedrange": True}
    lay_out(
        figure,
        x,
        y,
        66 + cell * len(rows),
        xaxis={
            "tickvals": list(range(len(columns))),
            "ticktext": list(columns),
            "tickfont": {"color": column_colour},
            **axis,
        },
        yaxis={
            "tickvals": list(range(len(rows))),
            "ticktext": list(rows),
            "tickfont": {"color": row_colour},
            "range": [len(rows) - 0.5, -0.5],
            **axis,
        },
        margin={"t": 10},
    )
    return figure


def _write(value: float, digits: int) -> str:
    if math.isnan(value):
        return ""
    written = f"{value:.{digits}f}" if abs(value) < 10**6 else f"{value:.1e}"
    return written.replace("-", "−") if float(written) else f"{0:.{digits}f}"

"""A batched matrix product as three stacks of sheets, one entry of the result followed back to its row and column."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float

from viz_core.figures.style import ACCENT, CATEGORIES, Labels, lay_out

LEFT, RIGHT = CATEGORIES[5], CATEGORIES[4]
_STEP = 0.32  # how far a sheet stands behind the one before it


class Entry(NamedTuple):
    """One entry of the result: Z[batch, row, column]."""

    batch: int
    row: int
    column: int


def product_figure(
    X: Float[np.ndarray, "batch n m"], Y: Float[np.ndarray, "batch m p"], entry: Entry, labels: Labels
) -> go.Figure:
    """X left of Z, Y above it: entry (i, j) stands where row i of X and column j of Y meet.

    The sheet of the entry's batch is in front, the others stand behind it.
    """
    batch, n, m = X.shape
    p = Y.shape[2]
    Z = X @ Y
    figure = go.Figure()
    depth = _STEP * (batch - 1)
    gap = depth + 1.0
    places = {"X": (0.0, 0.0, X, LEFT), "Y": (m + gap, n + gap, Y, RIGHT), "Z": (m + gap, 0.0, Z, ACCENT)}
    lit = {"X": (entry.row, None), "Y": (None, entry.column), "Z": (entry.row, entry.column)}
    for name, (left, bottom, matrices, colour) in places.items():
        _stack(figure, left, bottom, matrices.shape, colour)
        _cells(figure, left, bottom, matrices[entry.batch], colour, lit[name])
        figure.add_annotation(
            x=left + matrices.shape[2] / 2,
            y=bottom - 0.38,
            text=labels["sheet"].format(name=name, shape=", ".join(map(str, matrices.shape))),
            showarrow=False,
            font={"color": colour, "size": 14},
        )
    hidden = {"visible": False, "fixedrange": True}
    return lay_out(
        figure,
        "",
        "",
        460,
        xaxis={"range": [-0.4, m + p + gap + depth + 0.4], **hidden},
        yaxis={"range": [-0.8, n + m + gap + depth + 0.3], "scaleanchor": "x", **hidden},
        showlegend=False,
    )


def _stack(figure: go.Figure, left: float, bottom: float, shape: tuple[int, ...], colour: str) -> None:
    batch, rows, columns = shape
    for behind in reversed(range(batch)):
        shift = _STEP * behind
        figure.add_shape(
            type="rect",
            x0=left + shift,
            x1=left + shift + columns,
            y0=bottom + shift,
            y1=bottom + shift + rows,
            line={"color": colour, "width": 1.5},
            fillcolor=colour,
            opacity=1.0 if behind == 0 else 0.25,
            layer="below",
        )


def _cells(
    figure: go.Figure,
    left: float,
    bottom: float,
    matrix: Float[np.ndarray, "rows columns"],
    colour: str,
    lit: tuple[int | None, int | None],
) -> None:
    """The front sheet: faint cells with their numbers, the lit row, column or entry in full colour."""
    rows, columns = matrix.shape
    for i in range(rows):
        for j in range(columns):
            on = lit[0] in (None, i) and lit[1] in (None, j)
            x, y = left + j + 0.5, bottom + rows - i - 0.5
            figure.add_shape(
                type="rect",
                x0=x - 0.47,
                x1=x + 0.47,
                y0=y - 0.47,
                y1=y + 0.47,
                line={"width": 0},
                fillcolor=colour if on else "#f4f2ec",
                layer="below",
            )
    down, across = np.indices(matrix.shape).reshape(2, -1)
    figure.add_scatter(
        x=(left + across + 0.5).astype(np.float32),
        y=(bottom + rows - down - 0.5).astype(np.float32),
        mode="text",
        text=[f"{int(value)}".replace("-", "−") for value in matrix.ravel()],
        textfont={"color": "#1d2125", "size": 13},
        hovertemplate="%{customdata}: %{text}<extra></extra>",
        customdata=[f"[{a}, {b}]" for a, b in zip(down.tolist(), across.tolist(), strict=True)],
    )

"""A batched matrix product as three stacks of sheets, one entry of the result followed back to its row and column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float

from ui.widgets.figure_style import ACCENT, CATEGORIES, Labels, lay_out

Shape = dict[str, Any]  # as plotly draws it

LEFT, RIGHT = CATEGORIES[5], CATEGORIES[4]
_STEP = 0.32  # how far a sheet stands behind the one before it


class MatrixEntry(NamedTuple):
    """One entry of the result: Z[batch, row, column]."""

    batch: int
    row: int
    column: int


def product_figure(
    X: Float[np.ndarray, "batch n m"], Y: Float[np.ndarray, "batch m p"], entry: MatrixEntry, labels: Labels
) -> go.Figure:
    """X left of Z, Y above it: entry (i, j) stands where row i of X and column j of Y meet.

    The sheet of the entry's batch is in front, the others stand behind it.
    """
    batch, n, m = X.shape
    p = Y.shape[2]
    Z = X @ Y
    figure, shapes = go.Figure(), list[Shape]()
    depth = _STEP * (batch - 1)
    gap = depth + 1.0
    places = {"X": (0.0, 0.0, X, LEFT), "Y": (m + gap, n + gap, Y, RIGHT), "Z": (m + gap, 0.0, Z, ACCENT)}
    lit = {"X": (entry.row, None), "Y": (None, entry.column), "Z": (entry.row, entry.column)}
    for name, (left, bottom, matrices, colour) in places.items():
        shapes += _stack(left, bottom, matrices.shape, colour)
        shapes += _cells(left, bottom, matrices[entry.batch], colour, lit[name])
        _numbers(figure, left, bottom, matrices[entry.batch])
        figure.add_annotation(
            x=left + matrices.shape[2] / 2,
            y=bottom - 0.38,
            text=labels["sheet"].format(name=name, shape=", ".join(map(str, matrices.shape))),
            showarrow=False,
            font={"color": colour, "size": 14},
        )
    figure.layout.shapes = shapes  # added one by one, each is checked often
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


def _stack(left: float, bottom: float, shape: tuple[int, ...], colour: str) -> Iterator[Shape]:
    batch, rows, columns = shape
    for behind in reversed(range(batch)):
        shift = _STEP * behind
        yield {
            "type": "rect",
            "x0": left + shift,
            "x1": left + shift + columns,
            "y0": bottom + shift,
            "y1": bottom + shift + rows,
            "line": {"color": colour, "width": 1.5},
            "fillcolor": colour,
            "opacity": 1.0 if behind == 0 else 0.25,
            "layer": "below",
        }


def _cells(
    left: float,
    bottom: float,
    matrix: Float[np.ndarray, "rows columns"],
    colour: str,
    lit: tuple[int | None, int | None],
) -> Iterator[Shape]:
    """The front sheet: faint cells, the lit row, column or entry in full colour."""
    rows = len(matrix)
    for i, j in np.ndindex(*matrix.shape):
        on = lit[0] in (None, i) and lit[1] in (None, j)
        x, y = left + j + 0.5, bottom + rows - i - 0.5
        yield {
            "type": "rect",
            "x0": x - 0.47,
            "x1": x + 0.47,
            "y0": y - 0.47,
            "y1": y + 0.47,
            "line": {"width": 0},
            "fillcolor": colour if on else "#f4f2ec",
            "layer": "below",
        }


def _numbers(figure: go.Figure, left: float, bottom: float, matrix: Float[np.ndarray, "rows columns"]) -> None:
    rows = len(matrix)
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

"""Pictures of the sinusoidal table: the whole of it, some of its columns, its similarity, its binary cousin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from plotly.subplots import make_subplots
from torch import Tensor

from ui.widgets import traces
from ui.widgets.figure_style import ACCENT, CATEGORIES, SIGNED_SCALE, Labels, lay_out
from ui.widgets.heatmap import Exact, Heatmap, ranged_heatmap, signed_heatmap, to_pixels
from viz_core.lessons.sinusoidal_encoding import binary_code, doubling_columns, similarity_by_offset
from viz_core.positional.sinusoidal import angular_frequencies

Table = Float[Tensor, "positions num_hiddens"]

PARTS: dict[str, tuple[Literal["row", "column"], int]] = {"position": ("row", 1), "pair": ("column", 2)}
"""What terms of the text name in the heatmap."""

MAP_POSITIONS = 256
"""The similarity map shows at most so many positions; its diagonals would only go on."""

CODE_POSITIONS = 32
"""The binary code is shown of at most so many positions, so that its digits can be read."""


def table_heatmap(table: Table, base: float, labels: Labels) -> Heatmap:
    """The whole table with its frequencies, from which a browser computes exact values."""
    frequencies = angular_frequencies(table.shape[1], base).numpy()
    pixels = to_pixels(table, -1.0, 1.0)
    exact = Exact("sinusoid", frequencies)
    return Heatmap(pixels, -1.0, 1.0, labels["position"], labels["dimension"], exact, parts=PARTS)


def plain_heatmap(table: Table, labels: Labels) -> Heatmap:
    """Return the first positions of a broken table, whose values follow no formula a browser knows."""
    rows = table[:MAP_POSITIONS]
    cells = Exact("cells", rows.float().numpy())
    return Heatmap(to_pixels(rows, -1.0, 1.0), -1.0, 1.0, labels["position"], labels["dimension"], cells, parts=PARTS)


def error_heatmap(errors: Table, labels: Labels) -> Heatmap:
    """Errors of the first positions, in colours up to the largest error."""
    return replace(signed_heatmap(errors[:MAP_POSITIONS], labels["position"], labels["dimension"]), digits=9)


def similarity_heatmap(table: Table, labels: Labels) -> Heatmap:
    """p_i . p_j of the first positions, in colours that span what occurs."""
    rows = table[:MAP_POSITIONS]
    return ranged_heatmap(rows @ rows.T, labels["position_i"], labels["position_j"])


def offset_figure(table: Table, labels: Labels) -> go.Figure:
    """p_0 . p_k against k."""
    figure = go.Figure(
        go.Scatter(
            y=similarity_by_offset(table).float().numpy(),
            mode=_mode(len(table)),
            line={"color": ACCENT, "width": 2},
            marker={"size": 5},
            hovertemplate=f"{labels['offset']} %{{x}}: %{{y:.4f}}<extra></extra>",
        )
    )
    return lay_out(figure, labels["offset"], labels["similarity"], height=420)


def curve_figure(table: Table, names: Mapping[int, str], labels: Labels) -> go.Figure:
    """Chosen columns along the positions, each by its name in the legend."""
    figure = go.Figure()
    for place, (column, name) in enumerate(names.items()):
        figure.add_scatter(
            y=table[:, column].float().numpy(),
            name=name,
            mode=_mode(len(table)),
            line={"color": CATEGORIES[place % len(CATEGORIES)], "width": 2},
            marker={"size": 4},
            hovertemplate=f"{labels['position']} %{{x}}: %{{y:.6f}}",
        )
    return lay_out(
        figure, labels["position"], labels["value"], height=400, yaxis={"range": [-1.08, 1.08]}, showlegend=True
    )


def binary_figure(table: Table, base: float, labels: Labels) -> go.Figure:
    """Bits of the first positions, lowest first, beside columns of the table.

    Each bit is half as fast as the one before, each column about half. Where the table has no such column
    (see `doubling_columns`), its place is left blank.
    """
    code = binary_code(min(len(table), CODE_POSITIONS))
    positions, bits = code.shape
    columns = doubling_columns(bits, table.shape[1], base)
    encoding = np.full((positions, bits), np.nan, dtype=np.float32)
    for bit, column in enumerate(columns):
        if column is not None:
            encoding[:, bit] = table[:positions, column].numpy()
    figure = make_subplots(cols=2, shared_yaxes=True, horizontal_spacing=0.04)
    style: dict[str, Any] = {"colorscale": SIGNED_SCALE, "xgap": 2, "ygap": 1}
    traces.cells(
        figure,
        code.numpy(),
        hover=f"{labels['position']} %{{y}} · {labels['bit']} %{{x}}: %{{z}}",
        written=code.numpy(),
        zmin=-0.35,
        zmax=1.35,
        row=1,
        col=1,
        **style,
    )
    traces.cells(
        figure, encoding, hover=f"{labels['position']} %{{y}}: %{{z:.6f}}", zmin=-1, zmax=1, row=1, col=2, **style
    )
    lay_out(figure, labels["bit"], "", height=90 + 17 * max(positions, 8))
    names = ["" if column is None else str(column) for column in columns]
    figure.update_xaxes(tickmode="array", tickvals=list(range(bits)), showgrid=False, zeroline=False)
    figure.update_xaxes(title=labels["sine"], ticktext=names, col=2)
    figure.update_yaxes(autorange="reversed", showgrid=False, zeroline=False, dtick=1 if positions < 12 else 5)
    figure.update_yaxes(title=labels["position"], col=1)
    return figure


def _mode(points: int) -> str:
    """Lines with markers where the points are few enough."""
    return "lines+markers" if points <= 120 else "lines"

"""The matrix of a move, with the block of one pair framed."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float

from ui.widgets.figure_style import ACCENT, SIGNED_SCALE, Labels, lay_out


def matrix_figure(M: Float[np.ndarray, "rows rows"], first: int, pair: int, labels: Labels) -> go.Figure:
    """M as a heatmap, signed around zero, with the block of one pair framed.

    Args:
        M: the matrix, or a square cut out of it along the diagonal.
        first: the dimension at which this cut starts.
        pair: the pair whose block is framed.
    """
    dimensions = np.arange(first, first + len(M), dtype=np.float32)
    figure = go.Figure(
        go.Heatmap(
            z=M.astype(np.float32),
            x=dimensions,
            y=dimensions,
            zmin=-1,
            zmax=1,
            colorscale=SIGNED_SCALE,
            colorbar={
                "orientation": "h",
                "y": 1.0,
                "yanchor": "bottom",
                "thickness": 10,
                "len": 0.5,
                "tickvals": [-1, 0, 1],
            },
            hovertemplate=labels["entry"].format(row="%{y}", column="%{x}", value="%{z:.4f}") + "<extra></extra>",
        )
    )
    low, high = 2 * pair - 0.5, 2 * pair + 1.5
    figure.add_shape(type="rect", x0=low, x1=high, y0=low, y1=high, line={"color": ACCENT, "width": 3})
    lay_out(
        figure,
        labels["reads"],
        labels["writes"],
        480,
        xaxis={"constrain": "domain", "showgrid": False, "zeroline": False},
        yaxis={
            "scaleanchor": "x",
            "constrain": "domain",
            "constraintoward": "top",
            "autorange": "reversed",
            "showgrid": False,
            "zeroline": False,
        },
    )
    if len(M) <= 16:  # no half dimensions between the whole ones
        figure.update_xaxes(dtick=1).update_yaxes(dtick=1)
    return figure

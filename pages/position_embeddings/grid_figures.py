"""Relative positions on a grid: what one cell sees of every other, by rows, by columns and in sum."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Int
from plotly.subplots import make_subplots

from ui.widgets.figure_style import QUERIES, SIGNED_SCALE, Labels, lay_out
from viz_core.lessons.position_embeddings.scheme_parts import GridTerms


def grid_figure(terms: GridTerms, row: int, column: int, labels: Labels) -> go.Figure:
    """Three grids on one colour scale. Each cell says its offset; the query's cell is framed.

    Points lie over the cells of every grid, invisible but selectable: their customdata is (row, column, value).
    """
    height, width = terms.row_term.shape
    down = _signed(terms.row_offsets.numpy())
    across = _signed(terms.column_offsets.numpy())
    both = np.char.add(np.char.add(down, ", "), across)
    panels = ((terms.row_term.numpy(), down), (terms.column_term.numpy(), across), (terms.total.numpy(), both))
    names = [labels["row-term"], labels["column-term"], labels["sum-term"]]
    figure = make_subplots(rows=1, cols=3, subplot_titles=names, horizontal_spacing=0.05, shared_yaxes=True)
    limit = max(1e-6, max(float(np.abs(values).max()) for values, _ in panels))
    ys, xs = np.meshgrid(np.arange(height), np.arange(width), indexing="ij")
    for i, (values, offsets) in enumerate(panels, start=1):
        heatmap = go.Heatmap(
            z=values.astype(np.float32),
            text=offsets,
            texttemplate="%{text}",
            hoverinfo="skip",
            coloraxis="coloraxis",
            xgap=1,
            ygap=1,
        )
        points = go.Scatter(
            x=xs.ravel(),
            y=ys.ravel(),
            mode="markers",
            marker={"size": 22, "opacity": 0},
            # As a list: of a binary array a click brings keys.
            customdata=np.stack([ys.ravel(), xs.ravel(), values.ravel()], axis=1).tolist(),
            text=offsets.ravel(),
            hovertemplate="%{text}: %{customdata[2]:+.3f}<extra></extra>",
            showlegend=False,
        )
        figure.add_trace(heatmap, 1, i)
        figure.add_trace(points, 1, i)
        figure.add_shape(
            type="rect",
            x0=column - 0.5,
            x1=column + 0.5,
            y0=row - 0.5,
            y1=row + 0.5,
            line={"color": QUERIES, "width": 3},
            row=1,
            col=i,
        )
    lay_out(figure, labels["column"], "", height=170 + 38 * height)
    figure.update_yaxes(range=[height - 0.5, -0.5], tickvals=np.arange(height), ticktext=np.arange(height) + 1)
    figure.update_yaxes(title=labels["row"], col=1)
    figure.update_xaxes(range=[-0.5, width - 0.5], tickvals=np.arange(width), ticktext=np.arange(width) + 1)
    bar = {"title": labels["added"], "orientation": "h", "thickness": 10, "y": -0.35, "yanchor": "top"}
    figure.update_layout(
        coloraxis={"colorscale": SIGNED_SCALE, "cmin": -limit, "cmax": limit, "colorbar": bar}, clickmode="event+select"
    )
    return figure


def _signed(offsets: Int[np.ndarray, "height width"]) -> np.ndarray:
    return np.vectorize(lambda o: f"{o:+d}" if o else "0")(offsets).astype(str)

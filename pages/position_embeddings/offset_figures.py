"""Figures of offsets: the skew's scores by offset, clipping distances, and similarities of tables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float, Int
from plotly.subplots import make_subplots

from ui.widgets import traces
from ui.widgets.figure_style import ACCENT, CATEGORIES, KEYS, QUERIES, SIGNED_SCALE, Labels, lay_out
from viz_core.positional import clipped_offsets

# Shaw 2018, table 2: BLEU of English-German newstest 2013 by clipping distance k.
SHAW_BLEU = {0: 12.5, 1: 25.5, 2: 25.8, 4: 25.9, 16: 25.8, 64: 25.9, 256: 25.8}


def index_figure(num_tokens: int, max_distance: int | None, labels: Labels) -> go.Figure:
    """Which row of the table each query and key use: j - i + n - 1, or with clipping clip(j - i, -k, k) + k."""
    reach = num_tokens - 1 if max_distance is None else max_distance
    rows = clipped_offsets(num_tokens, reach).numpy()
    offsets = (rows - reach).astype(np.float32)
    figure = traces.cells(
        go.Figure(),
        offsets,
        hover=f"{labels['index']} %{{text}} · {labels['offset']} %{{z:+d}}",
        limit=max(1, num_tokens - 1),
        bar=labels["offset"],
        gap=1,
        written=rows.astype(str),
    )
    return lay_out(
        figure,
        labels["keys"],
        labels["queries"],
        height=120 + 26 * max(6, num_tokens),
        xaxis={"dtick": 1},
        yaxis={"autorange": "reversed", "dtick": 1},
    )


def table_figure(num_tokens: int, labels: Labels) -> go.Figure:
    """The rows of the table, 0 .. 2n - 2, and the offset each stands for."""
    offsets = np.arange(-num_tokens + 1, num_tokens, dtype=np.float32)
    figure = traces.cells(
        go.Figure(),
        offsets[None],
        hover=f"{labels['index']} %{{x}} · {labels['offset']} %{{text}}",
        limit=max(1, num_tokens - 1),
        written=[[f"{offset:+.0f}" if offset else "0" for offset in offsets]],
        xgap=1,
    )
    return lay_out(
        figure,
        labels["index"],
        labels["offset"],
        height=124,
        xaxis={"dtick": 1 if num_tokens <= 6 else 2},
        yaxis={"showticklabels": False},
        margin={"t": 6, "b": 50},
    )


def shaw_figure(max_distance: int, labels: Labels) -> go.Figure:
    """BLEU by clipping distance as published, with the distance chosen here marked."""
    distances = list(SHAW_BLEU)
    figure = traces.bars(
        go.Figure(),
        [str(k) for k in distances],
        list(SHAW_BLEU.values()),
        [ACCENT if k == max_distance else CATEGORIES[-1] for k in distances],
        hover="k = %{x}: %{y:.1f}",
        text=[f"{bleu:.1f}" for bleu in SHAW_BLEU.values()],
    )
    return lay_out(figure, labels["clipping"], labels["bleu"], height=300, xaxis={"type": "category"})


def bucket_figure(offsets: Int[np.ndarray, " n"], buckets: Int[np.ndarray, " n"], labels: Labels) -> go.Figure:
    """Which bucket each offset falls into; keys before the query in blue, after it in orange."""
    figure = go.Figure()
    sides = ((offsets <= 0, QUERIES, labels["before"]), (offsets > 0, KEYS, labels["after"]))
    for side, colour, name in sides:
        traces.line(
            figure,
            offsets[side],
            buckets[side],
            colour,
            name,
            hover=f"{labels['offset']} %{{x}}: {labels['bucket']} %{{y}}",
            shape="hvh",
            size=4,
        )
    return lay_out(figure, labels["signed-offset"], labels["bucket"], height=380)


def similarity_figure(tables: Mapping[str, Float[np.ndarray, "n d"]], labels: Labels) -> go.Figure:
    """p_i . p_j of each table, divided by its largest, side by side on one colour scale."""
    products = {labels[f"table-{name}"]: table @ table.T for name, table in tables.items()}
    similarities = {title: product / np.abs(product).max() for title, product in products.items()}
    figure = _side_by_side(similarities, "%{y}, %{x}: %{z:.3f}", labels["position"], labels["position"], 360)
    bar = {"title": labels["similarity"], "thickness": 12}
    return figure.update_layout(coloraxis={"colorscale": SIGNED_SCALE, "cmin": -1, "cmax": 1, "colorbar": bar})


def _side_by_side(
    maps: Mapping[str, Float[np.ndarray, "n n"]], hovertemplate: str, x: str, y: str, height: int
) -> go.Figure:
    """Maps by their titles, with the first row on top."""
    figure = make_subplots(rows=1, cols=len(maps), subplot_titles=list(maps), shared_yaxes=True)
    for column, values in enumerate(maps.values(), start=1):
        traces.cells(figure, values, hover=hovertemplate, coloraxis="coloraxis", row=1, col=column)
    lay_out(figure, x, "", height=height)
    figure.update_yaxes(range=[len(values) - 0.5, -0.5])
    return figure.update_yaxes(title=y, col=1)

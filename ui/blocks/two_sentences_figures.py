"""Figures of a patch sweep: the map of its cells, and the next words before and after a patch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float

from ui.text.head_names import layer_place
from ui.text.words import load_words
from ui.widgets import traces
from ui.widgets.figure_style import ACCENT, CATEGORIES, KEYS, QUERIES, VALUES, Labels, lay_out, named_bars, token_ticks
from viz_core.circuits import Edge
from viz_core.circuits.path import Head

LEAST_SHARE = 0.01
"""Paths that carry less are not drawn."""
_COLOURS = {"queries": QUERIES, "keys": KEYS, "values": VALUES, "logits": CATEGORIES[-1]}
_WRITTEN = 12  # columns up to which each cell has its number


def sweep_figure(
    recovered: Float[np.ndarray, "layers columns"],
    columns: Sequence[str],
    chosen: tuple[int, int],
    title: str,
    labels: Labels,
) -> go.Figure:
    """Share of the change that each cell recovers, from -1 to 1; the chosen cell is framed.

    Args:
        columns: label of each token or head.
        title: what the columns are.
    """
    layer, column = chosen
    written = [[f"{value:z.2f}" for value in row] for row in recovered] if len(columns) <= _WRITTEN else None
    figure = traces.cells(
        go.Figure(),
        recovered,
        written=written,
        textfont={"size": 12},
        limit=1,
        gap=1,
        bar=labels["recovered"],
        hover="%{z:.3f}",
    )
    box = {"x0": column - 0.5, "x1": column + 0.5, "y0": layer - 0.5, "y1": layer + 0.5}
    figure.add_shape(type="rect", **box, line={"color": QUERIES, "width": 3})
    layers = token_ticks([layer_place(i + 1) for i in range(len(recovered))])
    axes = {"xaxis": {**token_ticks(columns), "tickangle": -45}, "yaxis": {**layers, "autorange": "reversed"}}
    return lay_out(figure, title, labels["layer"], height=150 + 38 * len(recovered), **axes)


def words_figure(
    words: Sequence[str], probabilities: Float[np.ndarray, "runs words"], names: Sequence[str], labels: Labels
) -> go.Figure:
    """Probabilities of words as bars, one colour for each run; the first word on top.

    Args:
        names: of the runs.
    """
    axis, figure = named_bars(words), go.Figure()
    for row, name, colour in zip(probabilities, names, (CATEGORIES[-1], ACCENT, QUERIES), strict=True):
        traces.bars(figure, row, axis["tickvals"], colour, name, across=True, hover=f"{name}: %{{x:.3f}}")
    height, legend = 110 + 44 * len(words), {"traceorder": "normal"}
    return lay_out(figure, labels["probability"], "", height=height, yaxis=axis, legend=legend, barmode="group")


def circuit_figure(heads: Sequence[Head], edges: Sequence[tuple[Edge, float]], labels: Labels) -> go.Figure:
    """Heads of a circuit by number, from the first layer up to the logits; the width of a path is its share.

    Args:
        edges: each with its share of the change.
    """
    sites = sorted({site for site, _ in heads}, key=_order)
    columns = sorted({head for _, head in heads})
    places: dict[Head | None, tuple[float, float]] = {None: ((len(columns) - 1) / 2, float(len(sites)))}
    places |= {(site, head): (float(columns.index(head)), float(sites.index(site))) for site, head in heads}
    figure = go.Figure()
    for edge, share in sorted(edges, key=lambda pair: abs(pair[1])):
        if abs(share) < LEAST_SHARE:
            continue
        (x0, y0), (x1, y1) = places[edge.sender], places[edge.receiver]
        bend = {"queries": -0.12, "values": 0.12}.get(edge.to, 0.0)
        bend += 0.3 if x0 == x1 and y1 - y0 > 1 else 0.0  # not behind the heads between
        traces.line(
            figure,
            [x0, (x0 + x1) / 2 + bend, x1],
            [y0, (y0 + y1) / 2, y1],
            _COLOURS[edge.to],
            width=1 + 10 * min(1.0, abs(share)),
            shape="spline",
            opacity=0.8,
            hover=f"{labels[edge.to]}: {share:+.2f}",
        )
    x, y = zip(*places.values(), strict=True)
    traces.dots(figure, x, y, ACCENT, size=16)
    bare = {"showgrid": False, "zeroline": False}
    numbers = token_ticks([str(head + 1) for head in columns])  # a name each has no room on a phone
    names = {**token_ticks([*sites, ""]), "ticktext": [*map(_site, sites), labels["logits"]]}
    return lay_out(
        figure,
        labels["head"],
        "",
        height=120 + 90 * len(sites),
        xaxis={**numbers, **bare, "range": [-0.6, len(columns) - 0.4]},
        yaxis={**names, **bare, "range": [-0.4, len(sites) + 0.4]},
    )


def _parts(site: str) -> tuple[str, int, str]:
    """Return a site's stack, layer and kind of attention."""
    return site.split(".")[0], int(site.split(".")[1]), site.rpartition(".")[2]


def _order(site: str) -> tuple[bool, int, bool]:
    stack, layer, kind = _parts(site)
    return stack == "decoder", layer, kind == "cross"


def _site(site: str) -> str:
    """Return a layer, below it the kind of its attention where it is no self-attention of a decoder."""
    stack, layer, kind = _parts(site)
    kinds = load_words("common").group("head-kind")
    name = layer_place(layer + 1)
    return name if (stack, kind) == ("decoder", "self") else f"{name}<br>{kinds[kind if kind == 'cross' else stack]}"

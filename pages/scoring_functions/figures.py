"""Figures of scores and weights: number grids, masks, Gaussian terms, the book's toy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Bool, Float

from ui.text.numbers import ENGLISH, with_separators
from ui.widgets import traces
from ui.widgets.figure_style import (
    ACCENT,
    CATEGORIES,
    KEYS,
    QUERIES,
    SIGNED_SCALE,
    WEIGHTS,
    WEIGHTS_SCALE,
    Labels,
    lay_out,
)
from viz_core.lessons.scoring_functions.mask_variants import MaskRun
from viz_core.lessons.scoring_functions.scaling import GaussianTerms

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
    figure = traces.cells(
        go.Figure(),
        drawn,
        hover="%{customdata}: %{z:.5g}",
        gap=2,
        x=list(range(len(columns))),
        y=list(range(len(rows))),
        text=text,
        texttemplate="%{text}" if digits else None,
        textfont={"size": size},
        customdata=np.array([[f"{r}, {c}" for c in columns] for r in rows]),
        colorscale=WEIGHTS_SCALE if limit is None else SIGNED_SCALE,
        zmin=0 if limit is None else -limit,
        zmax=1 if limit is None else limit,
    )
    empty = np.isnan(drawn)
    if empty.any():
        traces.cells(
            figure,
            np.where(empty, np.float32(0), np.float32(np.nan)),
            gap=2,
            written=np.where(empty & ~np.isnan(values) & (digits > 0), "0", ""),
            x=list(range(len(columns))),
            y=list(range(len(rows))),
            textfont={"size": size, "color": CATEGORIES[7]},
            colorscale=[[0, EMPTY], [1, EMPTY]],
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


def sentences_figure(
    weights: Float[np.ndarray, "sentences tokens"],
    sentences: Sequence[Sequence[str]],
    labels: Labels,
    separators: str = ENGLISH,
) -> go.Figure:
    """A row a sentence: its words with their weights, in these separators; blanks are grey, with weight 0."""
    rows, columns = weights.shape
    shown = np.array([[i < len(words) for i in range(columns)] for words in sentences])
    across = [str(i + 1) for i in range(columns)]
    down = [str(i + 1) for i in range(rows)]
    figure = number_grid(weights, down, across, labels["token"], labels["sentence"], shown=shown, cell=48)
    cells, empty = figure.data
    cells.text = [
        [f"{word}<br>{with_separators(f'{weights[i, j]:.2f}', separators)}" for j, word in enumerate(words)]
        + [""] * (columns - len(words))
        for i, words in enumerate(sentences)
    ]
    empty.text = np.where(shown, "", f"{labels['blank']}<br>0")
    return figure


def toy_figure(rows: Float[np.ndarray, "4 keys"], lengths: Sequence[int], labels: Labels) -> go.Figure:
    """The weights of both batch rows, and below them the same after dropout; keys beyond a row's length are empty."""
    keys = rows.shape[1]
    shown = np.array([[key < length for key in range(keys)] for length in (*lengths, *lengths)])
    names = [labels["weights-of"].format(row=i + 1) for i in range(2)]
    names += [labels["dropped-of"].format(row=i + 1) for i in range(2)]
    return number_grid(
        rows, names, [str(key + 1) for key in range(keys)], labels["key"], "", shown=shown, digits=2, cell=40
    )


TERM_COLOURS = {"product": ACCENT, "key_term": KEYS, "query_term": QUERIES}
WEIGHT_COLOURS = {"gaussian": WEIGHTS, "without-query": CATEGORIES[5], "dot": ACCENT}
REACH = 2.8


def plane_figure(
    query: Float[np.ndarray, "2"],
    keys: Float[np.ndarray, "keys 2"],
    weights: Float[np.ndarray, " keys"],
    labels: Labels,
) -> go.Figure:
    """The query and the keys as points in the plane; lines and discs are as wide as Gaussian weights."""
    figure = go.Figure()
    for key, weight in zip(keys, weights, strict=True):
        ends = [query[0], key[0]], [query[1], key[1]]
        traces.line(figure, *ends, WEIGHTS, width=0.5 + 7 * float(weight), opacity=0.5)
    sizes = (18 + 36 * np.sqrt(weights)).astype(np.float32)
    traces.dots(figure, keys[:, 0], keys[:, 1], WEIGHTS, size=sizes, marker={"opacity": 0.5})
    figure.add_scatter(
        x=keys[:, 0].astype(np.float32),
        y=keys[:, 1].astype(np.float32),
        mode="markers+text",
        marker={"color": KEYS, "size": 18},
        text=[str(i + 1) for i in range(len(keys))],
        textfont={"color": "#ffffff", "size": 11},
        name=labels["keys"],
        customdata=weights.astype(np.float32),
        hovertemplate="%{text}: (%{x:.2f}, %{y:.2f}), %{customdata:.4f}<extra></extra>",
    )
    traces.dots(
        figure, query[:1], query[1:], QUERIES, labels["query"], hover="(%{x:.2f}, %{y:.2f})", size=15, symbol="diamond"
    )
    return lay_out(
        figure,
        labels["first"],
        labels["second"],
        420,
        xaxis={"range": [-REACH, REACH], "constrain": "domain"},
        yaxis={"range": [-REACH, REACH], "scaleanchor": "x", "constrain": "domain"},
    )


def terms_figure(terms: GaussianTerms, labels: Labels) -> go.Figure:
    """For every key: its dot product, its own term, the query's term, and a mark at their sum."""
    keys = terms.product.shape[1]
    names = [str(i + 1) for i in range(keys)]
    figure = go.Figure()
    for name, colour in TERM_COLOURS.items():
        traces.bars(
            figure,
            names,
            getattr(terms, name).expand(1, keys)[0].numpy(),
            colour,
            labels[name],
            hover="%{x}: %{y:.4f}",
            marker={"pattern": {"shape": "/" if name == "query_term" else ""}},
        )
    traces.dots(
        figure,
        names,
        terms.total()[0].numpy(),
        CATEGORIES[6],
        labels["total"],
        hover="%{x}: %{y:.4f}",
        size=26,
        symbol="line-ew",
        marker={"line": {"width": 4, "color": CATEGORIES[6]}},
    )
    return lay_out(figure, labels["key"], labels["score"], 420, xaxis={"type": "category"}, barmode="relative")


def softmax_figure(weights: Mapping[str, Float[np.ndarray, " keys"]], labels: Labels) -> go.Figure:
    """Softmax weights of every key from the whole score, without the query's term, and from the dot product alone."""
    figure = go.Figure()
    for name, values in weights.items():
        traces.bars(
            figure,
            [str(i + 1) for i in range(len(values))],
            values,
            WEIGHT_COLOURS[name],
            labels[name],
            hover="%{x}: %{y:.4f}",
        )
    return lay_out(figure, labels["key"], labels["weight"], 320, xaxis={"type": "category"}, yaxis={"range": [0, 1.02]})


def mask_figure(runs: Sequence[MaskRun], labels: Mapping[str, str]) -> go.Figure:
    """Weights by valid length (rows) and key (columns), with a line between the keys that may be seen and the rest.

    Cells are empty where there is no number: torch refused, or gave NaN.
    """
    num_keys = len(runs) - 1
    weights = np.full((len(runs), num_keys), np.nan, dtype=np.float32)
    for row, run in enumerate(runs):
        if run.weights is not None:
            weights[row] = run.weights.numpy()
    lengths = [str(run.length) for run in runs]
    keys = [str(key + 1) for key in range(num_keys)]
    figure = number_grid(
        weights, lengths, keys, labels["key"], labels["length"], digits=0, cell=24, row_colour=CATEGORIES[7]
    )
    steps = np.arange(len(runs), dtype=np.float32)
    traces.line(
        figure, np.repeat(steps - 0.5, 2), np.stack([steps - 0.5, steps + 0.5], axis=1).ravel(), KEYS, width=2.5
    )
    figure.update_xaxes(range=[-0.6, num_keys - 0.4])
    return figure

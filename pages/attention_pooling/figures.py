"""Kernel regression in pictures: the fit, the weights of one query or of all, kernels, the plane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float, Int
from plotly.subplots import make_subplots
from torch import Tensor

from ui.widgets import traces
from ui.widgets.figure_style import ACCENT, CATEGORIES, QUERIES, VALUES, WEIGHTS, WEIGHTS_SCALE, Labels, lay_out
from viz_core.lessons.attention_pooling import Fit, WidthSearch, kernel_curves

TRUTH = CATEGORIES[7]


def fit_figure(fit: Fit, query: float, at_query: float, weights: Float[Tensor, " train"], labels: Labels) -> go.Figure:
    """The fit beside the truth; below, on the same axis, the weights of one query on every key.

    Args:
        at_query: the fit at the query, NaN where it reaches no key.
        weights: those of the query.
    """
    figure = make_subplots(rows=2, shared_xaxes=True, row_heights=[0.7, 0.3], vertical_spacing=0.06)
    _add_curves(figure, fit, labels, True, row=1, col=1)
    sizes = np.nan_to_num(np.abs(to_array(weights)))  # broken weights are negative or NaN
    top = float(sizes.max()) or 1.0
    traces.dots(
        figure,
        to_array(fit.x_train),
        to_array(fit.y_train),
        VALUES,
        labels["values"],
        hover=labels["key-value"].format(x="%{x:.3f}", y="%{y:.3f}", weight="%{customdata:.4f}"),
        size=(6 + 14 * np.sqrt(sizes / top)).astype(np.float32),
        marker={"opacity": 0.75, "line": {"width": 0}},
        customdata=to_array(weights),
        meta="value",
        row=1,
        col=1,
    )
    if not np.isnan(at_query):
        traces.dots(
            figure,
            [query],
            [at_query],
            QUERIES,
            labels["answer"],
            hover=labels["at"].format(x="%{x:.3f}", y="%{y:.4f}"),
            size=14,
            symbol="diamond",
            marker={"line": {"width": 1, "color": "white"}},
            meta="query answer",
            row=1,
            col=1,
        )
    traces.bars(
        figure,
        to_array(fit.x_train),
        to_array(weights),
        WEIGHTS,
        hover=labels["key-weight"].format(x="%{x:.3f}", weight="%{y:.4f}"),
        marker={"line": {"width": 0}},
        width=np.full(len(weights), 0.03, dtype=np.float32),
        meta="key weight kernel",
        row=2,
        col=1,
    )
    for row in (1, 2):
        figure.add_vline(x=query, line={"color": QUERIES, "width": 1.5, "dash": "dash"}, row=row, col=1)
    lay_out(figure, "", "", 440)
    figure.update_xaxes(range=[-0.08, 5.08], zeroline=False)
    figure.update_xaxes(title=labels["x"], row=2)
    figure.update_yaxes(title=labels["y"], row=1, zeroline=False)
    figure.update_yaxes(title=labels["weight"], row=2, rangemode="tozero", nticks=4)
    return figure.update_layout(showlegend=True)


def map_figure(fit: Fit, labels: Labels) -> go.Figure:
    """Weights of all queries (rows) on all keys (columns, in order)."""
    figure = _add_weights(go.Figure(), fit, labels, showscale=True)
    return lay_out(
        figure,
        labels["keys"],
        labels["x"],
        430,
        xaxis={"showgrid": False, "zeroline": False},
        yaxis={"autorange": "reversed", "showgrid": False, "zeroline": False},
    )


def panels_figure(fits: Sequence[Fit], maps: Sequence[Fit], labels: Labels) -> go.Figure:
    """Fits side by side, each above a map of its weights, for which fewer queries will do."""
    figure = make_subplots(
        rows=2,
        cols=len(fits),
        shared_yaxes=True,
        subplot_titles=[fit.name for fit in fits],
        horizontal_spacing=0.02,
        vertical_spacing=0.14,
    )
    for col, (fit, shown) in enumerate(zip(fits, maps, strict=True), start=1):
        _add_curves(figure, fit, labels, col == 1, row=1, col=col)
        traces.dots(
            figure,
            to_array(fit.x_train),
            to_array(fit.y_train),
            VALUES,
            labels["values"],
            hover="(%{x:.2f}, %{y:.2f})",
            size=5,
            marker={"opacity": 0.6},
            legendgroup="values",
            showlegend=col == 1,
            row=1,
            col=col,
        )
        _add_weights(figure, shown, labels, showscale=False, row=2, col=col)
    lay_out(figure, "", "", 560)
    figure.update_xaxes(nticks=4)
    figure.update_xaxes(row=1, range=[0, 5], zeroline=False)
    figure.update_xaxes(row=2, showgrid=False, zeroline=False)
    middle = (len(fits) + 1) // 2  # one title for all: on a phone the panels are narrower than it is
    figure.update_xaxes(title=labels["x"], row=1, col=middle)
    figure.update_xaxes(title=labels["keys"], row=2, col=middle)
    figure.update_yaxes(title=labels["y"], row=1, col=1, zeroline=False)
    figure.update_yaxes(row=2, autorange="reversed", showgrid=False, zeroline=False)
    figure.update_yaxes(title=labels["queries"], row=2, col=1)
    return figure.update_layout(showlegend=True, margin={"t": 60}, legend={"y": 1.08, "font": {"size": 12}})


def _add_curves(figure: go.Figure, fit: Fit, labels: Labels, legend: bool, **place: int) -> None:
    """The truth, dashed, and the fit, which has gaps where it is NaN."""
    lines = (
        (fit.truth, "truth", {"color": TRUTH, "dash": "dash", "width": 2}),
        (fit.y_hat, "fit", {"color": QUERIES, "width": 3}),
    )
    for values, name, line in lines:
        figure.add_scatter(
            x=to_array(fit.x_val),
            y=to_array(values),
            mode="lines",
            line=line,
            connectgaps=False,
            name=labels[name],
            legendgroup=name,
            showlegend=legend,
            meta="answer" if name == "fit" else None,
            hovertemplate=f"{labels[name]} (%{{x:.2f}}) = %{{y:.4f}}<extra></extra>",
            **place,
        )


def _add_weights(figure: go.Figure, fit: Fit, labels: Labels, showscale: bool, **place: Any) -> go.Figure:
    return traces.cells(
        figure,
        to_array(fit.weights),
        hover=labels["map-cell"].format(query="%{y:.2f}", key="%{customdata:.3f}", weight="%{z:.4f}"),
        y=to_array(fit.x_val),
        zmin=0,
        colorscale=WEIGHTS_SCALE,
        showscale=showscale,
        colorbar={"thickness": 10, "title": {"text": labels["weight"]}},
        customdata=np.broadcast_to(to_array(fit.x_train), fit.weights.shape),
        **place,
    )


def to_array(values: Tensor) -> np.ndarray:
    return values.float().numpy()


def kernels_figure(chosen: str, width: float, labels: Labels) -> go.Figure:
    """Every kernel at this width against the distance, the chosen one thick."""
    span = float(max(3 * width, 0.5))
    distances, curves = kernel_curves(width, span)
    figure = go.Figure()
    for (name, heights), colour in zip(curves.items(), CATEGORIES[2:], strict=False):
        traces.line(
            figure,
            to_array(distances),
            to_array(heights),
            ACCENT if name == chosen else colour,
            labels[name],
            hover=f"{labels[name]}: %{{x:.3f}} → %{{y:.4f}}",
            width=4 if name == chosen else 1.5,
            opacity=1 if name == chosen else 0.75,
        )
    return lay_out(figure, labels["distance"], labels["nearness"], 430, yaxis={"range": [-0.04, 1.08]})


def width_figure(search: WidthSearch, true_errors: Float[Tensor, " widths"], width: float, labels: Labels) -> go.Figure:
    """Leave-one-out error by width with its minimum, and the error against the truth, which no data can show."""
    figure = go.Figure()
    for errors, colour, dash, name in (
        (search.errors, ACCENT, "solid", "left-out"),
        (true_errors, TRUTH, "dash", "true-error"),
    ):
        traces.line(
            figure,
            to_array(search.widths),
            to_array(errors),
            colour,
            labels[name],
            hover=labels["width-error"].format(width="%{x:.3f}", error="%{y:.4f}"),
            width=2.5,
            dash=dash,
        )
    traces.dots(
        figure,
        [search.best],
        [search.error],
        ACCENT,
        labels["best"],
        hover=labels["width-error"].format(width="%{x:.3f}", error="%{y:.4f}"),
        size=15,
        symbol="star",
    )
    figure.add_vline(x=width, line={"color": QUERIES, "width": 1.5, "dash": "dash"})
    ticks = [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10]
    return lay_out(
        figure,
        labels["width"],
        labels["error"],
        420,
        xaxis={"type": "log", "tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]},
        yaxis={"rangemode": "tozero"},
    )


_COLOURS = (CATEGORIES[0], CATEGORIES[1], CATEGORIES[2])
_SYMBOLS = ("circle", "square", "diamond")


def shares_figure(
    axis: Float[np.ndarray, " side"],
    shares: Float[np.ndarray, "side side labels"],
    points: Float[np.ndarray, "n 2"],
    given: Int[np.ndarray, " n"],
    labels: Labels,
) -> go.Figure:
    """Each place in the colour of the label with the largest share, paler where the share is smaller; points on top."""
    first = shares.argmax(axis=-1)
    figure = go.Figure()
    for label, (colour, symbol) in enumerate(zip(_COLOURS, _SYMBOLS, strict=True)):
        own = np.where(first == label, shares[..., label], np.nan)
        traces.cells(
            figure,
            own,
            hover=labels["share"].format(label=label + 1, share="%{z:.3f}"),
            x=axis.astype(np.float32),
            y=axis.astype(np.float32),
            zmin=1 / 3,
            zmax=1,
            colorscale=[[0, _faded(colour, 0.05)], [1, _faded(colour, 0.55)]],
        )
        mine = given == label
        traces.dots(
            figure,
            points[mine, 0],
            points[mine, 1],
            colour,
            labels["label"].format(label=label + 1),
            size=9,
            symbol=symbol,
            marker={"line": {"width": 1, "color": "white"}},
        )
    axes = {"zeroline": False, "showgrid": False}
    return lay_out(figure, labels["first"], labels["second"], 420, xaxis=axes, yaxis=axes)


def _faded(colour: str, opacity: float) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity})"

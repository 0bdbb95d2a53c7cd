"""Figures of lookups: weights of a query, the gradient of a lookup, every key looked up among all keys."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from plotly.subplots import make_subplots

from ui.text.numbers import localised
from ui.text.words import current_language
from ui.widgets import traces
from ui.widgets.chart import named_parts
from ui.widgets.figure_style import ACCENT, CATEGORIES, WEIGHTS, Labels, escape_labels, lay_out

_GREY = CATEGORIES[7]


def identities_figure(weights: Sequence[Float[np.ndarray, "_ _"]], labels: Labels) -> go.Figure:
    """Maps of several sizes side by side, from 0 to 1."""
    titles = [labels["identity-of"].format(count=len(each)) for each in weights]
    figure = make_subplots(1, len(weights), subplot_titles=titles, horizontal_spacing=0.12)
    for column, each in enumerate(weights, start=1):
        traces.cells(
            figure,
            each,
            hover=labels["looks-at"].format(query="%{y}", key="%{x}") + ": %{z:.6f}",
            x=np.arange(1, len(each) + 1),
            y=np.arange(1, len(each) + 1),
            row=1,
            col=column,
        )
    return lay_out(
        figure,
        labels["as-key"],
        "",
        330,
        xaxis={"showgrid": False, "zeroline": False, "nticks": 6},
        yaxis={"autorange": "reversed", "showgrid": False, "zeroline": False, "nticks": 6},
    ).update_yaxes(title=labels["as-query"], col=1)


def gradient_figure(
    gaps: Float[np.ndarray, " gaps"],
    soft: Float[np.ndarray, " gaps"],
    hard: Float[np.ndarray, " gaps"],
    slope: Float[np.ndarray, " gaps"],
    labels: Labels,
) -> go.Figure:
    """Above, the weight of one of two keys by its lead in score, hard and soft; below, the slope of either."""
    figure = make_subplots(2, 1, shared_xaxes=True, row_heights=[0.6, 0.4], vertical_spacing=0.08)
    lines = (
        (hard, labels["hard"], {"color": _GREY, "dash": "dash", "shape": "hv"}, 1),
        (soft, labels["soft"], {"color": WEIGHTS, "width": 3}, 1),
        (np.zeros_like(slope), labels["hard"], {"color": _GREY, "dash": "dash"}, 2),
        (slope, labels["soft"], {"color": ACCENT, "width": 3}, 2),
    )
    for y, name, line, row in lines:
        traces.line(
            figure, gaps, y, name=name, hover="%{x:.2f}: %{y:.4g}", line=line, showlegend=row == 1, row=row, col=1
        )
    lay_out(figure, "", "", 360)
    figure.update_xaxes(title=labels["gap"], row=2)
    figure.update_yaxes(title=labels["weight"], row=1, range=[-0.05, 1.05])
    return figure.update_yaxes(title=labels["slope"], row=2, rangemode="tozero", nticks=4)


MAX_LETTERS = 16  # of a word beside a picture
_LARGEST = 1e37  # that float32 holds with room to spare


def weights_figure(
    weights: Float[np.ndarray, " keys"] | None, names: Sequence[tuple[str, str]], labels: Labels
) -> go.Figure:
    """A bar for each key, the first on top, with its value and weight; empty places without weights.

    Above them is the output, the weighted sum of the values, each as a number: how many letters it has.
    """
    places = np.arange(len(names), dtype=np.float32)
    given = np.zeros(len(names)) if weights is None else np.minimum(weights, _LARGEST)
    largest = max(1.0, float(np.nan_to_num(given).max()))  # more than 1 where the formula is broken
    hover = [labels["pair"].format(key=key, value=value) for key, value in _escaped(names)]
    figure = traces.bars(
        go.Figure(),
        given,
        places,
        WEIGHTS,
        hover="%{customdata}: %{x:.6f}",
        across=True,
        beside=None if weights is None else [_number(weight) for weight in weights],
        meta="weight",
        customdata=hover,
    )
    shown = [labels["pair"].format(key=_short(key), value=_short(value)) for key, value in _escaped(names)]
    if weights is not None and np.isfinite(weights).all():
        corner = {"xref": "paper", "x": 1, "xanchor": "right", "yref": "paper", "y": 1, "yanchor": "bottom"}
        text = _output(weights, [len(value) for _, value in names], labels)
        figure.add_annotation(text=text, showarrow=False, **corner)
    return lay_out(
        figure,
        labels["weight"],
        "",
        90 + 30 * max(4, len(names)),
        xaxis={
            "range": [0, 1.14 * largest],
            "tickvals": [0, 0.25, 0.5, 0.75, 1] if largest == 1 else None,
            "zeroline": False,
        },
        yaxis={"tickvals": places, "ticktext": shown, "autorange": "reversed", "showgrid": False},
        bargap=0.35,
        meta=named_parts(y="key value"),
    )


def _output(weights: Float[np.ndarray, " keys"], lengths: Sequence[int], labels: Labels) -> str:
    """The weighted sum of the values' lengths, with its two largest terms written out."""
    largest = sorted(np.argsort(-weights, kind="stable")[:2].tolist())
    language = current_language()
    terms = [f"{localised(_number(float(weights[place])), language)} × {lengths[place]}" for place in largest]
    rest = ["…"] if len(lengths) > len(largest) else []
    total = localised(f"{float(weights @ np.array(lengths)):.2f}", language)
    return labels["output-sum"].format(sum=" + ".join(terms + rest), total=total)


def _number(weight: float) -> str:
    if np.isnan(weight):
        return "0/0"
    return f"{weight:.3f}" if weight < 1000 else f"{weight:.2g}"


def _escaped(names: Sequence[tuple[str, str]]) -> list[list[str]]:
    return [escape_labels(pair) for pair in names]


def _short(label: str) -> str:
    return label if len(label) <= MAX_LETTERS else f"{label[: MAX_LETTERS - 1]}…"

"""A score as bars by dimension, below the query and key; a line shows the running sum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float, Int

from ui.widgets.figure_style import ACCENT, CATEGORIES, KEYS, QUERIES, Labels, escape_labels, lay_out
from viz_core.maps.score_products import ScoreProducts

_GREY = "#7f7f7f"
_MOST_NAMED = 16  # dimensions whose numbers are written under the bars


def products_figure(found: ScoreProducts, labels: Labels, *, by_size: bool = False) -> go.Figure:
    """Query, key and products by dimension, then what else is added; the line is the sum so far.

    Args:
        labels: names "query", "key", "product", "sum", "cap", "bias" and "dimension".
        by_size: the largest products first, whatever their sign; else in the order of the dimensions.
    """
    order = np.argsort(-np.abs(found.products), kind="stable") if by_size else np.arange(len(found.products))
    names = [str(dimension + 1) for dimension in order]
    terms = {labels["cap"]: found.cap, labels["bias"]: found.bias}
    more = {name: term for name, term in terms.items() if term and not found.hidden}
    heights = np.concatenate((found.products[order], np.array(list(more.values()))))
    names += more
    figure = go.Figure(
        [
            _bars(heights, names, len(order), labels),
            go.Scatter(
                x=np.arange(len(heights), dtype=np.int32),
                y=heights.cumsum().astype(np.float32),
                mode="lines",
                line={"color": ACCENT, "width": 2, "shape": "hvh"},
                name=labels["sum"],
                hovertemplate=f"{labels['sum']}: %{{y:+.4f}}<extra></extra>",
            ),
            _row(found.key, order, "y2", KEYS, labels["key"]),
            _row(found.query, order, "y3", QUERIES, labels["query"]),
        ]
    )
    row = {"showticklabels": False, "ticks": "", "showgrid": False, "zeroline": False, "fixedrange": True}
    shown = len(order) <= _MOST_NAMED
    places = list(range(0 if shown else len(order), len(names)))
    return lay_out(
        figure,
        labels["dimension"],
        labels["product"],
        height=430,
        showlegend=False,
        xaxis={"tickmode": "array", "tickvals": places, "ticktext": [names[i] for i in places], "showgrid": False},
        yaxis={"domain": [0, 0.74], "zeroline": True},
        yaxis2={**row, "domain": [0.79, 0.87], "title": {"text": labels["key"]}},
        yaxis3={**row, "domain": [0.91, 0.99], "title": {"text": labels["query"]}},
    )


def parts_figure(terms: Sequence[tuple[str, float]], score: float, labels: Labels) -> go.Figure:
    """Terms of a score as horizontal bars, each beginning where the one above ends; the last bar is the score.

    Args:
        terms: name and value of each.
        labels: names "score" and "sum".
    """
    values = np.array([value for _, value in terms])
    starts = np.concatenate(([0.0], values.cumsum()[:-1], [0.0]))
    heights = np.concatenate((values, [score]))
    places = [f"{place}" for place in range(len(heights))]
    names = [*(name for name, _ in terms), labels["score"]]
    colours = [*(ACCENT if value >= 0 else CATEGORIES[3] for value in values), _GREY]
    figure = go.Figure(
        go.Bar(
            x=heights.astype(np.float32),
            base=starts.astype(np.float32),
            y=places,
            orientation="h",
            marker={"color": colours},
            text=[f"{height:+.2f}" for height in heights],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{text}<extra></extra>",
        )
    )
    ends = np.concatenate((starts, starts + heights))
    margin = 0.2 * max(float(np.ptp(ends)), 1e-6)
    return lay_out(
        figure,
        labels["sum"],
        "",
        height=110 + 26 * len(names),
        xaxis={"range": [float(ends.min()) - margin, float(ends.max()) + margin]},
        yaxis={
            "type": "category",
            "autorange": "reversed",
            "tickmode": "array",
            "tickvals": places,
            "ticktext": escape_labels(names),
        },
    )


def _bars(heights: Float[np.ndarray, " terms"], names: Sequence[str], count: int, labels: Labels) -> go.Bar:
    """A bar a term: blue-green up, rose down, grey what is not a product."""
    colours = np.where(heights >= 0, ACCENT, CATEGORIES[3])
    colours[count:] = _GREY
    terms = [f"{labels['dimension']} {name}" if place < count else name for place, name in enumerate(names)]
    return go.Bar(
        x=np.arange(len(heights), dtype=np.int32),
        y=heights.astype(np.float32),
        marker={"color": colours.tolist()},
        customdata=terms,
        name=labels["product"],
        hovertemplate="%{customdata}: %{y:+.4f}<extra></extra>",
    )


def _row(
    values: Float[np.ndarray, " d"], order: Int[np.ndarray, " d"], axis: str, colour: str, name: str
) -> go.Heatmap:
    """A vector as one row: its colour where it is positive, grey where it is negative, nothing at 0."""
    limit = float(np.abs(values).max()) or 1.0
    return go.Heatmap(
        z=values[order][None].astype(np.float32),
        x=np.arange(len(order), dtype=np.int32),
        yaxis=axis,
        zmin=-limit,
        zmax=limit,
        colorscale=[[0, _GREY], [0.5, "rgba(127,127,127,0)"], [1, colour]],
        showscale=False,
        customdata=(order + 1)[None],
        hovertemplate=f"{name} %{{customdata}}: %{{z:+.4f}}<extra></extra>",
    )

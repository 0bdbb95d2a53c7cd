"""Figures of the Gaussian score: the plane, the three terms of every key, and the weights."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float

from ui.widgets.figure_style import ACCENT, CATEGORIES, KEYS, QUERIES, Labels, lay_out
from viz_core.lessons.scoring_functions.gaussian_terms import GaussianTerms

TERM_COLOURS = {"product": ACCENT, "key_term": KEYS, "query_term": QUERIES}
WEIGHT_COLOURS = {"gaussian": CATEGORIES[6], "without-query": CATEGORIES[5], "dot": ACCENT}
REACH = 2.8


def plane_figure(
    query: Float[np.ndarray, "2"],
    keys: Float[np.ndarray, "keys 2"],
    weights: Float[np.ndarray, " keys"],
    labels: Labels,
) -> go.Figure:
    """The query and the keys as points in the plane; a key is as large as its Gaussian weight."""
    figure = go.Figure()
    for key, weight in zip(keys, weights, strict=True):
        figure.add_scatter(
            x=[query[0], key[0]],
            y=[query[1], key[1]],
            mode="lines",
            line={"color": KEYS, "width": 0.5 + 7 * float(weight)},
            opacity=0.35,
            hoverinfo="skip",
            showlegend=False,
        )
    figure.add_scatter(
        x=keys[:, 0].astype(np.float32),
        y=keys[:, 1].astype(np.float32),
        mode="markers+text",
        marker={"color": KEYS, "size": (10 + 34 * np.sqrt(weights)).astype(np.float32), "opacity": 0.85},
        text=[str(i + 1) for i in range(len(keys))],
        textfont={"color": "#ffffff", "size": 11},
        name=labels["keys"],
        customdata=weights.astype(np.float32),
        hovertemplate="%{text}: (%{x:.2f}, %{y:.2f}), %{customdata:.4f}<extra></extra>",
    )
    figure.add_scatter(
        x=query[:1].astype(np.float32),
        y=query[1:].astype(np.float32),
        mode="markers",
        marker={"color": QUERIES, "size": 15, "symbol": "diamond"},
        name=labels["query"],
        hovertemplate="(%{x:.2f}, %{y:.2f})<extra></extra>",
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
        figure.add_bar(
            x=names,
            y=getattr(terms, name).expand(1, keys)[0].numpy().astype(np.float32),
            marker={"color": colour, "pattern": {"shape": "/" if name == "query_term" else ""}},
            name=labels[name],
            hovertemplate="%{x}: %{y:.4f}<extra></extra>",
        )
    figure.add_scatter(
        x=names,
        y=terms.total()[0].numpy().astype(np.float32),
        mode="markers",
        marker={"symbol": "line-ew", "size": 26, "color": CATEGORIES[3], "line": {"width": 4, "color": CATEGORIES[3]}},
        name=labels["total"],
        hovertemplate="%{x}: %{y:.4f}<extra></extra>",
    )
    return lay_out(figure, labels["key"], labels["score"], 420, xaxis={"type": "category"}, barmode="relative")


def softmax_figure(weights: Mapping[str, Float[np.ndarray, " keys"]], labels: Labels) -> go.Figure:
    """Softmax weights of every key from the whole score, without the query's term, and from the dot product alone."""
    figure = go.Figure()
    for name, values in weights.items():
        figure.add_bar(
            x=[str(i + 1) for i in range(len(values))],
            y=values.astype(np.float32),
            marker={"color": WEIGHT_COLOURS[name]},
            name=labels[name],
            hovertemplate="%{x}: %{y:.4f}<extra></extra>",
        )
    return lay_out(figure, labels["key"], labels["weight"], 320, xaxis={"type": "category"}, yaxis={"range": [0, 1.02]})

"""Perplexity of the same words with all of the text in sight, with a window, and with the first tokens in it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go

from serving.requests.sinks import Windowed
from ui.widgets.figure_style import ACCENT, CATEGORIES, Labels, lay_out


def perplexities_figure(found: Windowed, names: Mapping[str, str], labels: Labels) -> go.Figure:
    """Three bars; the window that lost the first tokens in another colour.

    Args:
        names: of "full", "sliding" and "with-first".
        labels: names "perplexity" and "way".
    """
    heights = np.array([found.full, found.sliding, found.with_first], dtype=np.float32)
    figure = go.Figure(
        go.Bar(
            x=[names["full"], names["sliding"], names["with-first"]],
            y=heights,
            marker={"color": [ACCENT, CATEGORIES[1], ACCENT]},
            text=[f"{height:,.2f}" for height in heights],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{y:,.3f}<extra></extra>",
        )
    )
    return lay_out(figure, labels["way"], labels["perplexity"], height=320, yaxis={"rangemode": "tozero"})

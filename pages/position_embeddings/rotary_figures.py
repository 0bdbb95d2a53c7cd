"""Rotary positions: the pairs of a query and a key turning, and their product by distance."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float, Int

from pages.position_embeddings.rotary_hands_figure import hands_figure
from ui.widgets.figure_style import KEYS, QUERIES, Labels, lay_out
from viz_core.positional import angular_frequencies


def pairs_figure(query_position: int, key_position: int, num_hiddens: int, base: float, labels: Labels) -> go.Figure:
    """The hands of the pairs of d dimensions, pair j with frequency omega_j = base^(-2j/d)."""
    return hands_figure(query_position, key_position, angular_frequencies(num_hiddens, base).numpy(), labels)


def decay_figure(
    offsets: Int[np.ndarray, " n"],
    products: Float[np.ndarray, " n"],
    here: int,
    labels: Labels,
) -> go.Figure:
    """q . k by offset; the offset chosen is marked."""
    figure = go.Figure()
    figure.add_scatter(
        x=offsets,
        y=products.astype(np.float32),
        name=labels["product"],
        line={"color": QUERIES},
        hovertemplate="%{y:.3f}",
    )
    figure.add_vline(x=here, line={"color": KEYS, "width": 1.5})
    return lay_out(figure, labels["signed-offset"], labels["product"], height=340, hovermode="x unified")

"""Every head of a model at a glance: one measure of each, layer by layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float

from ui.blocks.figures import token_ticks
from ui.text.head_names import head_place
from ui.widgets.figure_style import WEIGHTS_SCALE, lay_out

Labels = Mapping[str, str]


def fingerprint_figure(values: Float[np.ndarray, "layers heads"], measure: str, labels: Labels) -> go.Figure:
    """One measure of every head: layers in rows, the first on top; heads in columns, both counted from 1."""
    layers, heads = values.shape
    figure = go.Figure(
        go.Heatmap(
            z=values.astype(np.float32),
            x=np.arange(1, heads + 1, dtype=np.int32),
            y=np.arange(1, layers + 1, dtype=np.int32),
            zmin=0,
            zmax=max(float(np.nanmax(values)), 1e-6),
            colorscale=WEIGHTS_SCALE,
            xgap=2,
            ygap=2,
            texttemplate="%{z:.2f}" if heads <= 16 and layers <= 16 else None,
            hovertemplate=head_place("%{y}", "%{x}") + ": %{z:.3f}<extra></extra>",
            colorbar={"title": labels.get(f"unit-{measure}", labels["weight"]), "thickness": 12},
        )
    )
    return lay_out(
        figure,
        labels["head"],
        labels["layer"],
        height=110 + 34 * min(layers, 24),
        xaxis={"dtick": max(1, heads // 16), "showgrid": False},
        yaxis={"dtick": max(1, layers // 16), "showgrid": False, "autorange": "reversed"},
    )


def corner_figure(
    weights: Float[np.ndarray, "queries keys"], queries: Sequence[str], keys: Sequence[str], labels: Labels
) -> go.Figure:
    """The map of one head with its tokens along both sides, without a colour bar: two stand side by side."""
    figure = go.Figure(
        go.Heatmap(
            z=weights.astype(np.float32),
            zmin=0,
            zmax=1,
            colorscale=WEIGHTS_SCALE,
            showscale=False,
            hovertemplate="%{y} → %{x}: %{z:.4f}<extra></extra>",
        )
    )
    return lay_out(
        figure,
        labels["keys"],
        labels["queries"],
        height=380,
        xaxis={"tickangle": -45, **token_ticks(keys)},
        yaxis={"autorange": "reversed", **token_ticks(queries)},
    )

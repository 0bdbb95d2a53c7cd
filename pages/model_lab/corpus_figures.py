"""Figures of roles over a corpus: every head by one role, one head by offset."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go

from serving.requests.corpus_kind import KindFound, Measured
from ui.text.head_names import head_place
from ui.text.numbers import ENGLISH, with_separators
from ui.widgets.figure_style import ACCENT, CATEGORIES, WEIGHTS_SCALE, lay_out
from viz_core.maps.roles import OFFSETS, ROLES

Labels = Mapping[str, str]


def interval_text(one: Measured) -> str:
    """A mean with its interval."""
    return f"{one.value:.3f}" if np.isnan(one.low) else f"{one.value:.3f} ({one.low:.3f} … {one.high:.3f})"


def roles_figure(kind: KindFound, role: str, labels: Labels, separators: str = ENGLISH) -> go.Figure:
    """Attention of every head to a role: layers in rows, the first on top; heads in columns, both counted from 1."""
    layers, heads = (1 + max(place) for place in zip(*kind.heads, strict=True))
    values = np.full((layers, heads), np.nan, dtype=np.float32)
    hover = [[["", 0] for _ in range(heads)] for _ in range(layers)]
    for place, (layer, head) in enumerate(kind.heads):
        one = kind.measured(place, ROLES[role])
        values[layer, head] = one.value
        hover[layer][head] = [with_separators(interval_text(one), separators), place]
    figure = go.Figure(
        go.Heatmap(
            z=values,
            x=np.arange(1, heads + 1, dtype=np.int32),
            y=np.arange(1, layers + 1, dtype=np.int32),
            customdata=hover,
            zmin=0,
            zmax=1,
            colorscale=WEIGHTS_SCALE,
            xgap=2,
            ygap=2,
            hoverongaps=False,
            texttemplate="%{z:.2f}" if heads <= 16 and layers <= 16 else None,
            hovertemplate=head_place("%{y}", "%{x}") + ": %{customdata[0]}<extra></extra>",
            colorbar={"title": labels["share"], "thickness": 12},
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


def offsets_figure(kind: KindFound, place: int, labels: Labels, separators: str = ENGLISH) -> go.Figure:
    """Attention of a head by offset from query to key, with intervals and chance level."""
    found = [kind.measured(place, f"{offset:+d}") for offset in OFFSETS]
    values = np.array([one.value for one in found], dtype=np.float32)
    above, below = (
        np.array([getattr(one, end) for one in found], dtype=np.float32) - values for end in ("high", "low")
    )
    figure = go.Figure(
        [
            go.Bar(
                x=np.array(OFFSETS, dtype=np.int32),
                y=values,
                name=labels["this-head"],
                marker={"color": ACCENT},
                error_y={"type": "data", "array": above, "arrayminus": -below, "thickness": 1},
                customdata=[with_separators(interval_text(one), separators) for one in found],
                hovertemplate="%{x}: %{customdata}<extra></extra>",
            ),
            go.Scatter(
                x=np.array(OFFSETS, dtype=np.int32),
                y=np.array([one.chance for one in found], dtype=np.float32),
                name=labels["by-chance"],
                mode="markers",
                marker={"color": CATEGORIES[-1], "symbol": "line-ew-open", "size": 10},
                hovertemplate="%{x}: %{y:.3f}<extra></extra>",
            ),
        ]
    )
    shown = {"dtick": 1, "range": [OFFSETS[0] - 0.6, OFFSETS[-1] + 0.6]}
    return lay_out(figure, labels["signed-offset"], labels["share"], height=300, xaxis=shown)

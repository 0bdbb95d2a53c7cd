"""What the model lab draws beside the maps: fingerprints of all heads, the next words, classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float

from viz_core.figures.map_group import MapGroup
from viz_core.figures.style import ACCENT, CATEGORIES, WEIGHTS_SCALE, escape_labels, lay_out
from viz_core.fingerprints import MEASURES

Labels = Mapping[str, str]


def measured(group: MapGroup) -> dict[str, Float[np.ndarray, "layers heads"]]:
    """Every measure that means something for these maps, by its name: one number for each head of each layer."""
    prints = [group.picture(layer).fingerprints for layer in range(len(group.calls))]
    heads = min(len(row) for row in prints)
    found = {}
    for name in MEASURES:
        values = [[getattr(print_, name) for print_ in row[:heads]] for row in prints]
        if all(value is not None for row in values for value in row):
            found[name] = np.array(values, dtype=np.float32)
    return found


def fingerprint_figure(values: Float[np.ndarray, "layers heads"], measure: str, labels: Labels) -> go.Figure:
    """One measure of every head: layers in rows, the first on top; heads in columns, both counted from 1."""
    layers, heads = values.shape
    figure = go.Figure(
        go.Heatmap(
            z=values.astype(np.float32),
            x=np.arange(1, heads + 1, dtype=np.int32),
            y=np.arange(1, layers + 1, dtype=np.int32),
            zmin=0,
            zmax=max(float(values.max()), 1e-6),
            colorscale=WEIGHTS_SCALE,
            xgap=2,
            ygap=2,
            texttemplate="%{z:.2f}" if heads <= 16 and layers <= 16 else None,
            hovertemplate=f"{labels['layer']} %{{y}}, {labels['head']} %{{x}}: %{{z:.3f}}<extra></extra>",
            colorbar={"title": labels[f"unit-{measure}"], "thickness": 12},
        )
    )
    figure.update_xaxes(dtick=max(1, heads // 16), showgrid=False)
    figure.update_yaxes(dtick=max(1, layers // 16), showgrid=False, autorange="reversed")
    return lay_out(figure, labels["head"], labels["layer"], height=110 + 34 * min(layers, 24))


def bars_figure(
    names: Sequence[str], probabilities: Sequence[float], chosen: str | None, title: str, labels: Labels
) -> go.Figure:
    """Probabilities as bars, the largest on top; the one that was chosen in the accent colour.

    Args:
        names: each once; two words that look alike are told apart by their place.
        title: of the vertical axis.
    """
    places = [f"{place}" for place in range(len(names))]
    figure = go.Figure(
        go.Bar(
            x=np.array(probabilities, dtype=np.float32),
            y=places,
            orientation="h",
            marker={"color": [ACCENT if name == chosen else CATEGORIES[-1] for name in names]},
            text=[f"{probability:.3f}" for probability in probabilities],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{x:.5f}<extra></extra>",
        )
    )
    figure.update_yaxes(
        type="category", autorange="reversed", tickmode="array", tickvals=places, ticktext=escape_labels(list(names))
    )
    figure.update_xaxes(range=[0, max(probabilities) * 1.15])
    return lay_out(figure, labels["probability"], title, height=90 + 28 * len(names))

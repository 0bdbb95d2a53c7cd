"""The picture of a lookup: weights over the keys."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float

from ui.widgets.chart import named_parts
from ui.widgets.figure_style import KEYS, Labels, escape_labels, lay_out

MOST_LETTERS = 16  # of a word beside a picture
_LARGEST = 1e37  # that float32 holds with room to spare


def weights_figure(
    weights: Float[np.ndarray, " keys"] | None, names: Sequence[tuple[str, str]], labels: Labels
) -> go.Figure:
    """A bar for each key, the first on top, with its value and weight; empty places without weights."""
    places = np.arange(len(names), dtype=np.float32)
    given = np.zeros(len(names)) if weights is None else np.minimum(weights, _LARGEST)
    largest = max(1.0, float(np.nan_to_num(given).max()))  # more than 1 where the formula is broken
    hover = [labels["pair"].format(key=key, value=value) for key, value in _escaped(names)]
    figure = go.Figure(
        go.Bar(
            x=given.astype(np.float32),
            y=places,
            orientation="h",
            marker={"color": KEYS},
            meta="weight",
            text=None if weights is None else [_number(weight) for weight in weights],
            textposition="outside",
            cliponaxis=False,
            customdata=hover,
            hovertemplate="%{customdata}: %{x:.6f}<extra></extra>",
        )
    )
    shown = [labels["pair"].format(key=_short(key), value=_short(value)) for key, value in _escaped(names)]
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
        yaxis={"tickvals": places, "ticktext": shown, "autorange": "reversed", "showgrid": False, "ticks": ""},
        bargap=0.35,
        meta=named_parts(y="key value"),
    )


def _number(weight: float) -> str:
    if np.isnan(weight):
        return "0/0"
    return f"{weight:.3f}" if weight < 1000 else f"{weight:.2g}"


def _escaped(names: Sequence[tuple[str, str]]) -> list[list[str]]:
    return [escape_labels(pair) for pair in names]


def _short(label: str) -> str:
    return label if len(label) <= MOST_LETTERS else f"{label[: MOST_LETTERS - 1]}…"

"""Labels over the plane, and the error by the number of points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float, Int

from ui.widgets.figure_style import ACCENT, CATEGORIES, Labels, lay_out

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
        figure.add_heatmap(
            x=axis.astype(np.float32),
            y=axis.astype(np.float32),
            z=own.astype(np.float32),
            zmin=1 / 3,
            zmax=1,
            colorscale=[[0, _faded(colour, 0.05)], [1, _faded(colour, 0.55)]],
            showscale=False,
            hoverongaps=False,
            hovertemplate=labels["share"].format(label=label + 1, share="%{z:.3f}") + "<extra></extra>",
        )
        mine = given == label
        figure.add_scatter(
            x=points[mine, 0].astype(np.float32),
            y=points[mine, 1].astype(np.float32),
            mode="markers",
            marker={"color": colour, "size": 9, "symbol": symbol, "line": {"width": 1, "color": "white"}},
            name=labels["label"].format(label=label + 1),
            hoverinfo="skip",
        )
    axes = {"zeroline": False, "showgrid": False}
    return lay_out(figure, labels["first"], labels["second"], 420, xaxis=axes, yaxis=axes)


def consistency_figure(
    sizes: Sequence[int],
    shrinking: Float[np.ndarray, " sizes"],
    fixed: Float[np.ndarray, " sizes"],
    labels: Labels,
) -> go.Figure:
    """The error against the truth by the number of points, on two logarithmic axes."""
    figure = go.Figure()
    for errors, colour, dash, name in (
        (shrinking, ACCENT, "solid", labels["shrinking"]),
        (fixed, CATEGORIES[7], "dash", labels["fixed"]),
    ):
        figure.add_scatter(
            x=np.array(sizes, dtype=np.float32),
            y=errors.astype(np.float32),
            mode="lines+markers",
            name=name,
            line={"color": colour, "dash": dash, "width": 2.5},
            hovertemplate="%{x:,}: %{y:.4f}<extra></extra>",
        )
    return lay_out(
        figure,
        labels["points"],
        labels["error"],
        340,
        xaxis={"type": "log", "tickvals": list(sizes), "ticktext": [f"{n:,}" for n in sizes]},
        yaxis={"type": "log"},
    )


def _faded(colour: str, opacity: float) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity})"

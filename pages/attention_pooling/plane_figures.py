"""Labels over the plane."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float, Int

from ui.widgets.figure_style import CATEGORIES, Labels, lay_out

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


def _faded(colour: str, opacity: float) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity})"

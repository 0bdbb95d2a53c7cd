"""Rotary positions: the pairs of a query and a key as clock hands."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float

from ui.widgets.figure_style import CATEGORIES, KEYS, QUERIES, Labels, lay_out

_PER_ROW, _SPACING, _MOST_PAIRS = 4, 2.7, 8


def hands_figure(
    query_position: int, key_position: int, frequencies: Float[np.ndarray, " pairs"], labels: Labels
) -> go.Figure:
    """A circle for each pair: the hand of a query (blue) and of a key (orange), clockwise from 12 o'clock.

    A hand of frequency omega at position m has the angle m omega; the angle between the hands is (m - n) omega. Of
    more than eight pairs eight are drawn, at even intervals.

    Args:
        frequencies: of a formula or of a trained model, in radians a position.
    """
    pairs = np.arange(0, len(frequencies), max(1, len(frequencies) // _MOST_PAIRS))
    omegas = frequencies[pairs]
    centres = np.array([[_SPACING * (j % _PER_ROW), -1.12 * _SPACING * (j // _PER_ROW)] for j in range(len(omegas))])
    angles = np.linspace(0, 2 * np.pi, 61)
    figure = go.Figure()
    figure.add_scatter(
        **_segments([centre + np.stack([np.sin(angles), np.cos(angles)], axis=1) for centre in centres]),
        mode="lines",
        line={"color": CATEGORIES[-1], "width": 1},
        hoverinfo="skip",
        showlegend=False,
    )
    for position, colour, name in ((query_position, QUERIES, "query"), (key_position, KEYS, "key")):
        tips = centres + np.stack([np.sin(position * omegas), np.cos(position * omegas)], axis=1)
        figure.add_scatter(
            **_segments([np.stack([centre, tip]) for centre, tip in zip(centres, tips, strict=True)]),
            mode="lines+markers",
            marker={"size": [0, 8, 0] * len(omegas), "opacity": [0, 1, 0] * len(omegas)},
            line={"color": colour, "width": 3},
            name=labels[name],
            customdata=np.repeat(np.degrees(position * omegas) % 360, 3).astype(np.float32),
            hovertemplate=f"{labels[name]}: %{{customdata:.1f}}°<extra></extra>",
        )
    figure.add_scatter(
        x=centres[:, 0].astype(np.float32),
        y=(centres[:, 1] - 1.28).astype(np.float32),
        mode="text",
        text=[labels["pair-number"].format(pair=j) for j in pairs],
        hoverinfo="skip",
        showlegend=False,
    )
    return lay_out(
        figure,
        labels["second-component"],
        labels["first-component"],
        height=80 + 150 * -(-len(omegas) // _PER_ROW),
        xaxis={"showticklabels": False, "showgrid": False, "zeroline": False},
        yaxis={
            "showticklabels": False,
            "showgrid": False,
            "zeroline": False,
            "scaleanchor": "x",
            "constrain": "domain",
        },
    )


def _segments(lines: list[Float[np.ndarray, "points 2"]]) -> dict[str, Float[np.ndarray, " all_points"]]:
    """Several lines as one trace, with a gap after each."""
    gap = np.full((1, 2), np.nan)
    points = np.concatenate([part for line in lines for part in (line, gap)]).astype(np.float32)
    return {"x": points[:, 0], "y": points[:, 1]}

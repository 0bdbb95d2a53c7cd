"""Values as arrows in the plane, the region that their weighted sums can reach, and the sum."""

from __future__ import annotations

import math

import numpy as np
import plotly.graph_objects as go
import torch
from jaxtyping import Float

from pages.queries_keys_values.figures import cone_arcs, convex_hull
from ui.widgets import traces
from ui.widgets.figure_style import CATEGORIES, QUERIES, VALUES, Labels, lay_out

_REGION = "rgba(0, 158, 115, 0.14)"  # VALUES, thin


def plane_figure(
    points: Float[np.ndarray, "values 2"],
    weights: Float[np.ndarray, " values"],
    case: str,
    labels: Labels,
) -> go.Figure:
    """Values v_i, the region that the case's weights can reach, and the steps a_i v_i from the origin to their sum."""
    steps = np.concatenate([np.zeros((1, 2)), np.cumsum(weights[:, None] * points, axis=0)])
    seen = np.concatenate([points, steps])
    low, high = seen.min(axis=0), seen.max(axis=0)
    reach = float(max(high - low).max()) or 1.0
    figure = go.Figure()
    _add_region(figure, points, case, 10 * reach, labels)
    for x, y in points.tolist():
        traces.line(figure, [0, x], [0, y], VALUES, width=1.5, opacity=0.55)
    figure.add_scatter(
        x=points[:, 0].astype(np.float32),
        y=points[:, 1].astype(np.float32),
        mode="markers+text",
        marker={"color": VALUES, "size": 11},
        text=[labels["value"].format(i=i + 1) for i in range(len(points))],
        textposition="top right",
        customdata=weights.astype(np.float32),
        hovertemplate=labels["point"].format(x="%{x:.3f}", y="%{y:.3f}", weight="%{customdata:.4f}")
        + "<extra>%{text}</extra>",
        name=labels["values"],
    )
    _add_sum(figure, steps, labels)
    middle, half = (low + high) / 2, 0.62 * reach
    return lay_out(
        figure,
        labels["x"],
        labels["y"],
        500,
        xaxis={"range": [middle[0] - half, middle[0] + half], "zeroline": True, "constrain": "domain"},
        yaxis={"range": [middle[1] - half, middle[1] + half], "zeroline": True, "scaleanchor": "x"},
        showlegend=True,
    )


def _add_sum(figure: go.Figure, steps: Float[np.ndarray, "steps 2"], labels: Labels) -> None:
    """Weight times value, one after the other, and a star at the end."""
    traces.line(figure, steps[:, 0], steps[:, 1], CATEGORIES[7], labels["steps"], width=2, dash="dot", size=4)
    traces.dots(
        figure,
        steps[-1:, 0],
        steps[-1:, 1],
        QUERIES,
        labels["output"],
        hover=labels["at"].format(x="%{x:.4f}", y="%{y:.4f}"),
        size=17,
        symbol="star",
        marker={"line": {"width": 1, "color": "white"}},
    )


def _add_region(
    figure: go.Figure, points: Float[np.ndarray, "values 2"], case: str, far: float, labels: Labels
) -> None:
    """Every place where the output can lie under the case: span, cone, hull, the values themselves, their mean."""
    if case in ("free", "non-negative"):
        directions = np.concatenate([points, -points]) if case == "free" else points
        outlines = [_sector(start, end, far) for start, end in cone_arcs(torch.from_numpy(directions))]
    elif case == "convex":
        corners = convex_hull(torch.from_numpy(points)).numpy()
        outlines = [np.concatenate([corners, corners[:1]])]
    else:
        only = points if case == "one-hot" else points.mean(axis=0, keepdims=True)
        traces.dots(
            figure,
            only[:, 0],
            only[:, 1],
            _REGION,
            labels[case],
            size=30,
            marker={"line": {"width": 1.5, "color": VALUES}},
        )
        return
    for i, outline in enumerate(outlines):
        traces.line(
            figure,
            outline[:, 0],
            outline[:, 1],
            VALUES,
            labels[case],
            width=1 if len(outline) > 2 else 3,
            fill="toself" if len(outline) > 2 else None,
            fillcolor=_REGION,
            showlegend=i == 0,
        )


def _sector(start: float, end: float, far: float) -> Float[np.ndarray, "corners 2"]:
    """The outline of a sector around the origin, a ray where it has no width."""
    if start == end:
        return far * np.array([[0.0, 0.0], [math.cos(start), math.sin(start)]])
    angles = np.linspace(start, end, max(3, math.ceil((end - start) * 16)))
    arc = far * np.column_stack([np.cos(angles), np.sin(angles)])
    origin = np.zeros((1, 2))
    return arc if end - start > 2 * math.pi - 1e-9 else np.concatenate([origin, arc, origin])

"""Weights in the plane: values and weights to type or drag, and what a special case makes of them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st
import torch
from jaxtyping import Float

from pages.queries_keys_values.figures import convex_hull
from pages.queries_keys_values.parts import FIRST_ROWS, Mixture
from pages.queries_keys_values.rows import Rows, typed_rows
from ui.chapter.chapter import Chapter
from ui.text.markdown import escape
from ui.text.numbers import half_width, localised, separators
from ui.widgets import traces
from ui.widgets.figure_style import CATEGORIES, QUERIES, VALUES, Labels, lay_out
from viz_core.lessons.queries_keys_values import CASES, cases_met, copy_error, weights_of_case

MAX_VALUES = 8
LARGEST = 1e6
_COLUMNS = ("x", "y", "weight")


def section(chapter: Chapter) -> None:
    """Draw the plane and its claims."""
    chapter.text("plane")
    with chapter.card("plane"):
        with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
            case = choose_case(chapter)
            broken = chapter.break_it("negative", part="plane")
        chapter.text(f"case.{case}")
        rows, picture = st.columns([5, 6], gap="large")
        with rows:
            mixture = choose_mixture(chapter, case)
        if mixture is None:
            return
        with rows:
            readout(chapter, mixture)
        with picture:
            chapter.side_by_side(broken, partial(_plane_and_claims, chapter, mixture))
    chapter.download_table("values", partial(_as_table, mixture))


def _plane_and_claims(chapter: Chapter, mixture: Mixture, broken: str) -> None:
    if broken == "negative":
        mixture = replace(mixture, weights=-mixture.weights)
    plane(chapter, mixture)
    with chapter.claim_row("plane-claims"):
        plane_claims(chapter, mixture)


def _as_table(mixture: Mixture) -> pd.DataFrame:
    return pd.DataFrame(
        {"x": mixture.points[:, 0].numpy(), "y": mixture.points[:, 1].numpy(), "weight": mixture.weights.numpy()}
    )


def choose_case(chapter: Chapter) -> str:
    """Read the constraint on the weights."""
    return chapter.controls.choice("case", CASES, "convex")


def choose_mixture(chapter: Chapter, case: str) -> Mixture | None:
    """Read values and weights; None, with a warning per cell, where a cell is not a number."""
    words = chapter.words
    around: dict[str, object] = {
        "columns": [words(f"rows.{column}") for column in _COLUMNS],
        **{name: words(f"rows.{name}") for name in ("names", "slider", "add", "remove")},
        "cell": words("rows.cell", column="{column}", row="{row}"),
        "low": -1,
        "high": 2,
        "step": 0.05,
        "decimal": separators(words.language)[0],
    }
    key = chapter.controls.key("values")
    first = [[localised(cell, words.language) for cell in row] for row in FIRST_ROWS]
    rows = typed_rows(key, words.label("values"), around, first, MAX_VALUES, _unreadable)
    bad = _unreadable(rows)
    for row, column in bad:
        cell = rows[row][column].strip()
        name = "problem.cell" if cell else "problem.blank"
        st.warning(
            words(name, value=row + 1, column=words(f"rows.{_COLUMNS[column]}"), cell=escape(cell[:40])),
            icon=":material/edit:",
        )
    if not rows:
        st.info(words("problem.no-values"), icon=":material/edit:")
    if bad or not rows:
        return None
    numbers = torch.tensor([[read_number(cell, LARGEST) for cell in row] for row in rows], dtype=torch.float64)
    points, typed = numbers[:, :2], numbers[:, 2]
    try:
        return Mixture(points, typed, weights_of_case(typed, case), case)
    except ValueError:  # the one way left to fail: a convex sum of nothing
        st.warning(words("problem.no-weight"), icon=":material/edit:")
        return None


def plane(chapter: Chapter, mixture: Mixture) -> None:
    """Draw the plane with the weights in use."""
    x, y = mixture.output.tolist()
    names = chapter.words.group("figure")
    figure = plane_figure(mixture.points.numpy(), mixture.weights.numpy(), mixture.case, names)
    chapter.figure(
        "plane",
        figure,
        count=len(mixture.points),
        case=chapter.words(f"option.{mixture.case}"),
        x=f"{x:.3f}",
        y=f"{y:.3f}",
    )


def readout(chapter: Chapter, mixture: Mixture) -> None:
    """Output, sum, and which of the cases the weights in use are."""
    x, y = mixture.output.tolist()
    met = [chapter.words(f"option.{case}") for case in cases_met(mixture.weights)]
    used = [f"{weight:.3f}" for weight in mixture.weights.tolist()]
    total = f"{float(mixture.weights.sum()):.3f}"
    chapter.text("readout", used=used, total=total, x=f"{x:.3f}", y=f"{y:.3f}", met=met)


def plane_claims(chapter: Chapter, mixture: Mixture) -> None:
    """Claims about the output in this case."""
    scale = 1e-9 * (1 + float(mixture.points.abs().max()) * float(mixture.weights.abs().sum()))
    negative = max(0.0, -float(mixture.weights.min()))
    if mixture.case in CASES[1:]:
        chapter.claim("cone", negative, 0.0)
    if mixture.case in CASES[2:]:
        chapter.claim("hull", max(negative, abs(float(mixture.weights.sum()) - 1)), 1e-9)
    if mixture.case == "one-hot":
        chapter.claim("one-hot", float((mixture.points - mixture.output).norm(dim=1).min()), scale)
    if mixture.case == "uniform":
        chapter.claim("mean", float((mixture.points.mean(dim=0) - mixture.output).norm()), scale)
    chapter.claim("copies", copy_error(mixture.weights), 0.0)


def _unreadable(rows: Rows) -> list[tuple[int, int]]:
    return [(i, j) for i, row in enumerate(rows) for j, cell in enumerate(row) if read_number(cell, LARGEST) is None]


def read_number(text: str, largest: float) -> float | None:
    """A number as people type it, "0.25", "0,25", "−1" or "1/3"; None where there is none of at most this size."""
    parts = half_width(text).replace("−", "-").replace(",", ".").split("/")
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        return None
    if len(numbers) > 2 or (len(numbers) == 2 and numbers[1] == 0):
        return None
    value = numbers[0] / numbers[1] if len(numbers) == 2 else numbers[0]
    return value if abs(value) <= largest else None  # NaN is not at most anything


_REGION = "rgba(0, 158, 115, 0.14)"  # VALUES, thin


def plane_figure(
    points: Float[np.ndarray, "values 2"], weights: Float[np.ndarray, " values"], case: str, labels: Labels
) -> go.Figure:
    """Values v_i, the steps a_i v_i from the origin to their sum, and where it can lie if the weights sum to 1."""
    steps = np.concatenate([np.zeros((1, 2)), np.cumsum(weights[:, None] * points, axis=0)])
    seen = np.concatenate([points, steps])
    low, high = seen.min(axis=0), seen.max(axis=0)
    reach = float(max(high - low).max()) or 1.0
    figure = go.Figure()
    _add_region(figure, points, case, labels)
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


def _add_region(figure: go.Figure, points: Float[np.ndarray, "values 2"], case: str, labels: Labels) -> None:
    """Every place where the output can lie if the weights sum to 1: the hull, the values themselves, their mean."""
    if case == "convex":
        corners = convex_hull(torch.from_numpy(points)).numpy()
        outline = np.concatenate([corners, corners[:1]])
        area: dict[str, Any] = {"fill": "toself", "fillcolor": _REGION} if len(corners) > 2 else {}
        traces.line(figure, outline[:, 0], outline[:, 1], VALUES, labels[case], width=1 if area else 3, **area)
    elif case in ("one-hot", "uniform"):
        only = points if case == "one-hot" else points.mean(axis=0, keepdims=True)
        edge = {"line": {"width": 1.5, "color": VALUES}}
        traces.dots(figure, only[:, 0], only[:, 1], _REGION, labels[case], size=30, marker=edge)

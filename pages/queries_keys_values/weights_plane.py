"""Weights in the plane: values and weights to type or drag, and what a special case makes of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import plotly.graph_objects as go
import streamlit as st
import torch
from torch import Tensor

from pages.queries_keys_values.plane_figures import plane_figure
from pages.queries_keys_values.rows import Rows, typed_rows
from ui.chapter.chapter import Chapter
from ui.text.markdown import escape
from viz_core.lessons.queries_keys_values.plane import distance_to_cone, distance_to_hull
from viz_core.lessons.queries_keys_values.weight_cases import CASES, cases_met, copy_error, read_number, weights_of_case

MOST_VALUES = 8
LARGEST = 1e6
_FIRST = (("0.5", "2", "0.2"), ("2.4", "2.4", "0.4"), ("3", "0.6", "0.3"), ("2", "1.6", "0.1"))
FIRST_POINTS = tuple((float(x), float(y)) for x, y, _ in _FIRST)
_COLUMNS = ("x", "y", "weight")


@dataclass(frozen=True, eq=False)
class Mixture:
    """Values in the plane, the weights as typed, and the weights after the case's constraint."""

    points: Tensor
    typed: Tensor
    weights: Tensor
    case: str

    @property
    def output(self) -> Tensor:
        return self.weights @ self.points


def choose_case(chapter: Chapter) -> str:
    """Read the constraint on the weights."""
    case = chapter.controls.choice("case", CASES, "convex")
    chapter.text(f"case.{case}")
    return case


def choose_mixture(chapter: Chapter, case: str) -> Mixture | None:
    """Read values and weights; None, with a warning per cell, where a cell is not a number."""
    words = chapter.words
    around: dict[str, object] = {
        "columns": [words(f"rows.{column}") for column in _COLUMNS],
        **{name: words(f"rows.{name}") for name in ("names", "slider", "add", "remove")},
        "low": -1,
        "high": 2,
        "step": 0.05,
    }
    key = chapter.controls.key("values")
    rows = typed_rows(key, words.label("values"), around, _FIRST, MOST_VALUES, _unreadable)
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


def plane(chapter: Chapter, mixture: Mixture, hide_answer: bool) -> go.Figure:
    """Draw the plane with the weights in use; without their sum while the answer is hidden."""
    x, y = mixture.output.tolist()
    names = chapter.words.group("figure")
    figure = plane_figure(mixture.points.numpy(), mixture.weights.numpy(), mixture.case, names, not hide_answer)
    chapter.figure(
        "plane",
        figure,
        hide_answer=hide_answer,
        count=len(mixture.points),
        case=chapter.words(f"option.{mixture.case}"),
        region=chapter.words(f"figure.{mixture.case}"),
        x=f"{x:.3f}",
        y=f"{y:.3f}",
        outside=f"{distance_to_hull(mixture.output, mixture.points):.3f}",
        beyond=f"{distance_to_cone(mixture.output, mixture.points):.3f}",
    )
    return figure


def readout(chapter: Chapter, mixture: Mixture) -> None:
    """Output, sum, and which of the cases the weights in use are."""
    x, y = mixture.output.tolist()
    met = [chapter.words(f"option.{case}") for case in cases_met(mixture.weights)]
    used = [f"{weight:.3f}" for weight in mixture.weights.tolist()]
    total = f"{float(mixture.weights.sum()):.3f}"
    chapter.text("readout", used=used, total=total, x=f"{x:.3f}", y=f"{y:.3f}", met=met)


def plane_claims(chapter: Chapter, mixture: Mixture, broken: str) -> None:
    """Claims about the output in this case, some broken on request."""
    if broken == "negative":
        mixture = replace(mixture, weights=-mixture.weights)
    scale = 1e-9 * (1 + float(mixture.points.abs().max()) * float(mixture.weights.abs().sum()))
    if mixture.case in CASES[1:]:
        chapter.claim("cone", distance_to_cone(mixture.output, mixture.points), scale)
    if mixture.case in CASES[2:]:
        chapter.claim("hull", distance_to_hull(mixture.output, mixture.points), scale)
    if mixture.case == "one-hot":
        chapter.claim("one-hot", float((mixture.points - mixture.output).norm(dim=1).min()), scale)
    if mixture.case == "uniform":
        chapter.claim("mean", float((mixture.points.mean(dim=0) - mixture.output).norm()), scale)
    chapter.claim("copies", copy_error(mixture.weights), 0.0)


def _unreadable(rows: Rows) -> list[tuple[int, int]]:
    return [(i, j) for i, row in enumerate(rows) for j, cell in enumerate(row) if read_number(cell, LARGEST) is None]

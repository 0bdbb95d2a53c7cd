"""Weights in the plane: values and weights to type or drag, and what a special case makes of them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pandas as pd
import streamlit as st
import torch

from pages.queries_keys_values.figures import distance_to_cone, distance_to_hull
from pages.queries_keys_values.parts import FIRST_ROWS, Mixture
from pages.queries_keys_values.plane_figures import plane_figure
from pages.queries_keys_values.rows import Rows, typed_rows
from ui.chapter.chapter import Chapter
from ui.text.markdown import escape
from ui.text.numbers import half_width, localised, separators
from viz_core.lessons.queries_keys_values.lookup import CASES, cases_met, copy_error, weights_of_case

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
        {
            "x": mixture.points[:, 0].numpy(),
            "y": mixture.points[:, 1].numpy(),
            "weight": mixture.weights.numpy(),
        }
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
        region=chapter.words(f"figure.{mixture.case}"),
        x=f"{x:.3f}",
        y=f"{y:.3f}",
        outside=f"{distance_to_hull(mixture.output, mixture.points):.3f}",
        beyond=f"{distance_to_cone(mixture.output, mixture.points):.3f}",
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

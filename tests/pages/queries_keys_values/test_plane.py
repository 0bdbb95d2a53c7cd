"""Weights in the plane: hulls by hand, the figure, numbers as they are typed."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pages.queries_keys_values.figures import convex_hull, weights_figure
from pages.queries_keys_values.weights_plane import plane_figure, read_number
from ui.text.words import load_words
from ui.widgets.figure_style import KEYS, QUERIES, VALUES
from viz_core.lessons.queries_keys_values.lookup import CASES, soft_lookup


def plane(*rows: tuple[float, float]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def test_a_square_with_a_point_inside_and_one_on_its_edge() -> None:
    hull = convex_hull(plane((0, 0), (2, 0), (2, 2), (0, 2), (1, 1), (1, 0)))
    assert hull.tolist() == [[0, 0], [2, 0], [2, 2], [0, 2]]


@pytest.mark.parametrize(
    ("given_points", "corners"),
    [
        ([(1, 2)], [[1, 2]]),
        ([(1, 2), (1, 2)], [[1, 2]]),
        ([(0, 0), (1, 1), (3, 3)], [[0, 0], [3, 3]]),
    ],
)
def test_hulls_without_an_inside(given_points: list[tuple[float, float]], corners: list[list[float]]) -> None:
    assert convex_hull(plane(*given_points)).tolist() == corners


LABELS = load_words("queries-keys-values", "en").group("figure")
POINTS = np.array([[0.0, 2.0], [2.0, 2.0], [2.0, 0.0]])
WEIGHTS = np.array([0.5, 0.25, 0.25])


def traces(points: np.ndarray, weights: np.ndarray, case: str) -> dict:
    return {trace.name: trace for trace in plane_figure(points, weights, case, LABELS).data}


@pytest.mark.parametrize("case", CASES)
def test_the_output_is_the_last_of_the_steps(case: str) -> None:
    drawn = traces(POINTS, WEIGHTS, case)
    output, steps = drawn[LABELS["output"]], drawn[LABELS["steps"]]
    assert (output.x[0], output.y[0]) == (1.0, 1.5)
    assert list(zip(steps.x.tolist(), steps.y.tolist(), strict=True)) == [(0, 0), (0, 1), (0.5, 1.5), (1, 1.5)]
    assert output.marker.color == QUERIES
    assert drawn[LABELS["values"]].marker.color == VALUES
    assert (LABELS.get(case, "") in drawn) == (case in CASES[2:])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.25", 0.25),
        (" 3 ", 3),
        ("0,25", 0.25),
        ("−1", -1),
        ("1/4", 0.25),
        ("-1/4", -0.25),
        ("1e2", 100),
        ("1e7", None),
        ("abc", None),
        ("", None),
        ("1/0", None),
        ("1/2/3", None),
        ("nan", None),
        ("inf", None),
        ("inf/inf", None),
    ],
)
def test_numbers_as_they_are_typed(text: str, value: float | None) -> None:
    assert read_number(text, 1e6) == value


def test_a_bar_for_every_key_even_where_keys_are_alike() -> None:
    weights = soft_lookup(["Li"], ["Li", "Li", "<b>"], 0.2)[0].numpy()
    figure = weights_figure(weights, [("Li", "Mu"), ("Li", "Ma"), ("<b>", "x" * 40)], LABELS)
    bars = figure.data[0]
    np.testing.assert_allclose(bars.x, weights, rtol=1e-6)
    assert bars.x.dtype == np.float32
    assert bars.marker.color == KEYS
    assert list(figure.layout.yaxis.ticktext) == ["Li → Mu", "Li → Ma", "&lt;b&gt; → xxxxxxxxxxxxxxx…"]
    assert bars.customdata[2].endswith("x" * 40)

"""Weights in the plane: hulls and cones by hand and against sampled weights, the figure, numbers as they are typed."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pages.queries_keys_values.figures import cone_arcs, convex_hull, distance_to_cone, distance_to_hull, weights_figure
from pages.queries_keys_values.plane_figures import plane_figure
from pages.queries_keys_values.weights_plane import read_number
from ui.text.words import load_words
from ui.widgets.figure_style import KEYS, QUERIES, VALUES
from viz_core.lessons.queries_keys_values.lookup import CASES, soft_lookup

PI = math.pi
points = st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), min_size=1, max_size=6)


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


@pytest.mark.parametrize(
    ("given_points", "arcs"),
    [
        ([(1, 0), (0, 2)], [(0, PI / 2)]),
        ([(1, 1)], [(PI / 4, PI / 4)]),
        ([(2, 0), (1, 0), (0, 0)], [(0, 0)]),
        ([(1, 0), (-1, 0)], [(0, 0), (PI, PI)]),
        ([(1, 0), (-1, 0), (0, 1)], [(0, PI)]),
        ([(-1, 1), (-1, -1)], [(3 * PI / 4, 5 * PI / 4)]),  # across the cut of atan2
        ([(1, 0), (-1, 1), (-1, -1)], [(-3 * PI / 4, 5 * PI / 4)]),  # the whole plane
        ([(0, 0)], []),
    ],
)
def test_cones_by_hand(given_points: list[tuple[float, float]], arcs: list[tuple[float, float]]) -> None:
    found = cone_arcs(plane(*given_points))
    assert len(found) == len(arcs)
    for arc, expected in zip(found, arcs, strict=True):
        turns = (arc[0] - expected[0]) / (2 * PI)
        assert turns == pytest.approx(round(turns), abs=1e-9)
        assert arc[1] - arc[0] == pytest.approx(expected[1] - expected[0])


@given(rows=points, seed=st.integers(0, 99))
def test_what_weights_make_lies_where_it_must(rows: list[tuple[int, int]], seed: int) -> None:
    values = plane(*rows)
    raw = torch.rand(len(rows), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    assert distance_to_hull(raw / raw.sum() @ values, values) < 1e-12
    assert distance_to_cone(3 * raw @ values, values) < 1e-12


def test_distances_by_hand() -> None:
    triangle = plane((0, 0), (4, 0), (0, 4))
    assert distance_to_hull(plane((1, 1))[0], triangle) == 0
    assert distance_to_hull(plane((-3, -4))[0], triangle) == 5
    assert distance_to_hull(plane((4, 4))[0], triangle) == pytest.approx(math.sqrt(8))
    assert distance_to_hull(plane((3, 4))[0], plane((0, 0))) == 5
    quarter = plane((1, 0), (0, 1))
    assert distance_to_cone(plane((7, 9))[0], quarter) == 0
    assert distance_to_cone(plane((2, -3))[0], quarter) == 3
    assert distance_to_cone(plane((-3, -4))[0], quarter) == 5
    assert distance_to_cone(plane((3, 4))[0], plane((0, 0))) == 5


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
    assert LABELS[case] in drawn


def test_the_cone_starts_at_the_origin_and_leaves_the_picture() -> None:
    figure = plane_figure(POINTS, WEIGHTS, "non-negative", LABELS)
    cone = figure.data[0]
    assert (cone.x[0], cone.y[0]) == (0, 0)
    assert cone.x.min() >= 0
    assert cone.y.min() >= -1e-6
    assert cone.x.max() > figure.layout.xaxis.range[1]
    assert cone.y.max() > figure.layout.yaxis.range[1]


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

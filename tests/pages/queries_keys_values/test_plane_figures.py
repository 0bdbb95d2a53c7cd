"""The plane shows the sum where it is, and each case's region."""

from __future__ import annotations

import numpy as np
import pytest

from pages.queries_keys_values.plane_figures import plane_figure
from ui.text.words import load_words
from ui.widgets.figure_style import QUERIES, VALUES
from viz_core.lessons.queries_keys_values.lookup import CASES

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


def test_the_hull_closes() -> None:
    hull = traces(POINTS, WEIGHTS, "convex")[LABELS["convex"]]
    corners = list(zip(hull.x.tolist(), hull.y.tolist(), strict=True))
    assert corners[0] == corners[-1]
    assert set(corners) == {(0, 2), (2, 2), (2, 0)}
    assert hull.fill == "toself"


def test_the_cone_starts_at_the_origin_and_leaves_the_picture() -> None:
    figure = plane_figure(POINTS, WEIGHTS, "non-negative", LABELS)
    cone = figure.data[0]
    assert (cone.x[0], cone.y[0]) == (0, 0)
    assert cone.x.min() >= 0
    assert cone.y.min() >= -1e-6
    assert cone.x.max() > figure.layout.xaxis.range[1]
    assert cone.y.max() > figure.layout.yaxis.range[1]


def test_a_line_of_values_spans_a_line() -> None:
    on_a_line = np.array([[1.0, 1.0], [2.0, 2.0]])
    rays = [t for t in plane_figure(on_a_line, np.array([1.0, 0.0]), "free", LABELS).data if t.name == LABELS["free"]]
    assert len(rays) == 2
    for ray in rays:
        np.testing.assert_allclose(ray.x, ray.y, rtol=1e-5, atol=1e-5)
        assert ray.fill is None


def test_the_mean_and_the_values_are_places() -> None:
    mean = traces(POINTS, WEIGHTS, "uniform")[LABELS["uniform"]]
    np.testing.assert_allclose([mean.x[0], mean.y[0]], [4 / 3, 4 / 3], rtol=1e-6)
    assert len(traces(POINTS, WEIGHTS, "one-hot")[LABELS["one-hot"]].x) == 3


def test_one_value_at_the_origin_still_has_a_picture() -> None:
    for case in CASES:
        figure = plane_figure(np.zeros((1, 2)), np.ones(1), case, LABELS)
        assert figure.layout.xaxis.range[0] < 0 < figure.layout.xaxis.range[1]

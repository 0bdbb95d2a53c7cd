"""Hulls and cones by hand, and against sampled weights."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pages.queries_keys_values.figures import cone_arcs, convex_hull, distance_to_cone, distance_to_hull

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


@given(rows=points, x=st.integers(-6, 6), y=st.integers(-6, 6))
def test_the_drawn_hull_agrees_with_the_triangles(rows: list[tuple[int, int]], x: int, y: int) -> None:
    """Corners from one algorithm, inside or outside from another."""
    values, point = plane(*rows), plane((x, y))[0]
    corners = convex_hull(values)
    assert distance_to_hull(point, corners) == pytest.approx(distance_to_hull(point, values), abs=1e-12)
    if len(corners) > 2:
        edges = zip(corners.tolist(), [*corners.tolist()[1:], corners.tolist()[0]], strict=True)
        left = [(bx - ax) * (y - ay) - (by - ay) * (x - ax) >= 0 for (ax, ay), (bx, by) in edges]
        assert all(left) == (distance_to_hull(point, values) == 0)


@given(rows=points, x=st.integers(-6, 6), y=st.integers(-6, 6))
def test_the_drawn_cone_agrees_with_the_pairs(rows: list[tuple[int, int]], x: int, y: int) -> None:
    values, point = plane(*rows), plane((x, y))[0]
    if (x, y) == (0, 0):
        assert distance_to_cone(point, values) == 0
        return
    angle = math.atan2(y, x)
    within = any(
        (angle - start) % (2 * PI) <= end - start + 1e-9 or (start - angle) % (2 * PI) < 1e-9
        for start, end in cone_arcs(values)
    )
    assert within == (distance_to_cone(point, values) < 1e-9)


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


def test_no_points_have_no_hull() -> None:
    with pytest.raises(ValueError, match="points: expected at least one, got none"):
        convex_hull(torch.empty(0, 2))

"""Where weighted sums of points in the plane can lie: their convex hull and their cone, and the way to each."""

from __future__ import annotations

import itertools
import math

import torch
from jaxtyping import Float
from torch import Tensor

Points = Float[Tensor, "points 2"]
Point = Float[Tensor, "2"]


def convex_hull(points: Points) -> Float[Tensor, "corners 2"]:
    """Corners of the smallest convex shape around the points, counter-clockwise (Andrew 1979, monotone chain).

    Two corners where all points lie on a line, one where they are all the same.
    """
    if len(points) == 0:
        raise ValueError("points: expected at least one, got none")
    ordered = sorted({(float(x), float(y)) for x, y in points})
    if len(ordered) == 1:
        return torch.tensor(ordered, dtype=points.dtype)
    lower, upper = _chain(ordered), _chain(ordered[::-1])
    return torch.tensor(lower[:-1] + upper[:-1], dtype=points.dtype)


def _chain(ordered: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """One side of the hull: a corner that does not turn left is not a corner."""
    side: list[tuple[float, float]] = []
    for point in ordered:
        while len(side) > 1 and _turn(side[-2], side[-1], point) <= 0:
            side.pop()
        side.append(point)
    return side


def _turn(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> float:
    """Twice the area of the triangle a b c: positive if it turns left."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def cone_arcs(points: Points, tolerance: float = 1e-9) -> list[tuple[float, float]]:
    """The directions in the cone {sum a_i v_i, a_i >= 0}, as angles from a start counter-clockwise to an end.

    Mostly one arc: no wider than pi, or 2 pi where the cone is the whole plane. An arc from an angle
    to itself is a ray; two of them are a line. No arc at all: every point is the origin.
    """
    angles = sorted({math.atan2(float(y), float(x)) for x, y in points if math.hypot(float(x), float(y)) > 0})
    if not angles:
        return []
    after = [*angles[1:], angles[0] + 2 * math.pi]
    gap, place = max((b - a, i) for i, (a, b) in enumerate(zip(angles, after, strict=True)))
    if gap < math.pi - tolerance:  # whichever way one looks, some point is ahead
        return [(angles[0], angles[0] + 2 * math.pi)]
    if len(angles) == 2 and gap < math.pi + tolerance:
        return [(angle, angle) for angle in angles]
    start = after[place]
    return [(start, start + 2 * math.pi - gap)]


def distance_to_hull(point: Point, points: Points) -> float:
    """How far a point is from the convex hull; 0 inside.

    It looks at every triangle of points: a point of the hull lies in one of them (Caratheodory 1907).
    Nothing here knows how `convex_hull` finds its corners.
    """
    corners = [tuple(map(float, row)) for row in points]
    p = (float(point[0]), float(point[1]))
    if len(corners) == 1:
        return math.dist(p, corners[0])
    if any(_inside(p, triangle) for triangle in itertools.combinations(corners, 3)):
        return 0.0
    return min(_to_segment(p, a, b) for a, b in itertools.combinations(corners, 2))


def distance_to_cone(point: Point, points: Points) -> float:
    """How far a point is from the cone of the points; 0 inside. Two of them are enough for any of its points."""
    p = (float(point[0]), float(point[1]))
    rays = [(float(x), float(y)) for x, y in points if math.hypot(float(x), float(y)) > 0]
    if not rays:
        return math.hypot(*p)
    if any(_between(p, a, b) for a, b in itertools.combinations(rays, 2)):
        return 0.0
    return min(_to_ray(p, ray) for ray in rays)


def _inside(p: tuple[float, float], triangle: tuple[tuple[float, ...], ...]) -> bool:
    a, b, c = ((corner[0], corner[1]) for corner in triangle)
    turns = (_turn(a, b, p), _turn(b, c, p), _turn(c, a, p))
    flat = _turn(a, b, c) == 0
    return not flat and (all(turn >= 0 for turn in turns) or all(turn <= 0 for turn in turns))


def _between(p: tuple[float, float], a: tuple[float, float], b: tuple[float, float]) -> bool:
    """Whether p = s a + t b with s, t >= 0."""
    area = a[0] * b[1] - a[1] * b[0]
    if area == 0:
        return False
    s = (p[0] * b[1] - p[1] * b[0]) / area
    t = (a[0] * p[1] - a[1] * p[0]) / area
    return s >= 0 and t >= 0


def _to_segment(p: tuple[float, float], a: tuple[float, ...], b: tuple[float, ...]) -> float:
    dx, dy = b[0] - a[0], b[1] - a[1]
    length = dx * dx + dy * dy
    along = 0.0 if length == 0 else min(1.0, max(0.0, ((p[0] - a[0]) * dx + (p[1] - a[1]) * dy) / length))
    return math.dist(p, (a[0] + along * dx, a[1] + along * dy))


def _to_ray(p: tuple[float, float], ray: tuple[float, float]) -> float:
    along = max(0.0, (p[0] * ray[0] + p[1] * ray[1]) / (ray[0] ** 2 + ray[1] ** 2))
    return math.dist(p, (along * ray[0], along * ray[1]))

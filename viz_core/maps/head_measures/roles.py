"""Roles of heads: the mean weight on a target. Each is a measure with that target (`head_measure.role`)."""

from viz_core.maps.head_measure import Example, MapInfo, Target, role

DIAGONAL = role("diagonal", 1, Target(offset=0), Example(((1.0, 0.0), (0.75, 0.25)), 0.625, MapInfo(2, 2)))
"""On the token itself (`diagonal_mass`)."""

PREVIOUS = role(
    "previous",
    2,
    Target(offset=-1),
    Example(((1.0, 0.0, 0.0), (0.75, 0.25, 0.0), (0.0, 0.25, 0.75)), 0.5, MapInfo(3, 3)),
)
"""On the token before (`offset_mass` at -1)."""

NEXT = role(
    "next", 3, Target(offset=1), Example(((0.0, 1.0, 0.0), (0.5, 0.0, 0.5), (1.0, 0.0, 0.0)), 0.75, MapInfo(3, 3))
)
"""On the token after (`offset_mass` at 1)."""

FIRST = role(
    "first",
    4,
    Target(keys="first"),
    Example(((1.0, 0.0, 0.0), (0.5, 0.25, 0.25)), 0.75, MapInfo(2, 3, on_itself=False)),
)
"""On the first key (`key_mass`); of a picture, where that is not a patch."""

SEPARATOR = role(
    "separator",
    5,
    Target(keys="separators"),
    Example(((0.25, 0.25, 0.5), (0.5, 0.5, 0.0)), 0.625, MapInfo(2, 3, on_itself=False, separators=(0, 2))),
)
"""On keys that separate or end (`key_mass`)."""

"""Mean weight on keys that separate or end (`key_mass`)."""

from viz_core.maps.head_measure import Example, MapInfo, Target, role

MEASURE = role(
    "separator",
    5,
    Target(keys="separators"),
    Example(((0.25, 0.25, 0.5), (0.5, 0.5, 0.0)), 0.625, MapInfo(2, 3, on_itself=False, separators=(0, 2))),
)

"""Mean weight on the first key (`key_mass`); of a picture, where that is not a patch."""

from viz_core.maps.head_measure import Example, MapInfo, Target, role

MEASURE = role(
    "first",
    4,
    Target(keys="first"),
    Example(((1.0, 0.0, 0.0), (0.5, 0.25, 0.25)), 0.75, MapInfo(2, 3, on_itself=False)),
)

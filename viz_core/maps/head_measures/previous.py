"""Mean weight on the token before (`offset_mass` at -1)."""

from viz_core.maps.head_measure import Example, MapInfo, Target, role

MEASURE = role(
    "previous",
    2,
    Target(offset=-1),
    Example(((1.0, 0.0, 0.0), (0.75, 0.25, 0.0), (0.0, 0.25, 0.75)), 0.5, MapInfo(3, 3)),
)

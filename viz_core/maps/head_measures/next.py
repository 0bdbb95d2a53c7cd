"""Mean weight on the token after (`offset_mass` at 1)."""

from viz_core.maps.head_measure import Example, MapInfo, Target, role

MEASURE = role(
    "next", 3, Target(offset=1), Example(((0.0, 1.0, 0.0), (0.5, 0.0, 0.5), (1.0, 0.0, 0.0)), 0.75, MapInfo(3, 3))
)

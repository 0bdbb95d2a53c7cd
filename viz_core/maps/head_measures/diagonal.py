"""Mean weight of a token on itself (`diagonal_mass`)."""

from viz_core.maps.head_measure import Example, MapInfo, Target, role

MEASURE = role("diagonal", 1, Target(offset=0), Example(((1.0, 0.0), (0.75, 0.25)), 0.625, MapInfo(2, 2)))

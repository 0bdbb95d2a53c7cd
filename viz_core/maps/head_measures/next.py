"""Mean weight on the token after (`offset_mass` at 1)."""

from viz_core.maps.head_measure import Example, MapInfo, Measure
from viz_core.maps.measures import offset_sum

MEASURE = Measure(
    name="next",
    unit="share",
    order=3,
    applies=lambda info: info.has_neighbours,
    maximum=lambda _: 1.0,
    sums=lambda block: offset_sum(block.weights, block.first + 1),
    value=lambda sums, info: sums / (info.num_queries - 1),
    example=Example(((0.0, 1.0, 0.0), (0.5, 0.0, 0.5), (1.0, 0.0, 0.0)), 0.75, MapInfo(3, 3)),
)

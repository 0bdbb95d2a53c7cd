"""Mean weight on the token before (`offset_mass` at -1)."""

from viz_core.maps.head_measure import Example, MapInfo, Measure
from viz_core.maps.measures import offset_sum

MEASURE = Measure(
    name="previous",
    unit="share",
    order=2,
    applies=lambda info: info.has_neighbours,
    maximum=lambda _: 1.0,
    sums=lambda block: offset_sum(block.weights, block.first - 1),
    value=lambda sums, info: sums / (info.num_queries - 1),
    example=Example(((1.0, 0.0, 0.0), (0.75, 0.25, 0.0), (0.0, 0.25, 0.75)), 0.5, MapInfo(3, 3)),
)

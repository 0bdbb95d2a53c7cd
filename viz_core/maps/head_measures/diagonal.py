"""Mean weight of a token on itself (`diagonal_mass`)."""

from viz_core.maps.head_measure import Example, MapInfo, Measure
from viz_core.maps.measures import offset_sum

MEASURE = Measure(
    name="diagonal",
    unit="share",
    order=1,
    applies=lambda info: info.is_square,
    maximum=lambda _: 1.0,
    sums=lambda block: offset_sum(block.weights, block.first),
    example=Example(((1.0, 0.0), (0.75, 0.25)), 0.625, MapInfo(2, 2)),
)

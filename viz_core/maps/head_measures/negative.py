"""Share of negative weight: sum_j max(-w_ij, 0) / sum_j |w_ij|, mean over queries; 0 where all weights add."""

from viz_core.maps.head_measure import Example, MapInfo, Measure
from viz_core.maps.measures import weight_shares

MEASURE = Measure(
    name="negative",
    unit="share",
    order=12,
    signed=True,
    applies=lambda _: True,
    maximum=lambda _: 1.0,
    sums=lambda block: (weight_shares(block.weights) * (block.weights < 0)).sum(dim=(-2, -1)),
    example=Example(((-2.0, 0.0), (1.0, -3.0)), 0.875, MapInfo(2, 2, signed=True)),
)

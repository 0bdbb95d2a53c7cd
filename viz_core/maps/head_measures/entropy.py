"""Mean entropy of the rows in bits, - sum_j w_ij log2 w_ij (`attention_entropy`): 0 for one key, log2(keys) at most."""

import math

from viz_core.maps.head_measure import Example, MapInfo, Measure

MEASURE = Measure(
    name="entropy",
    unit="bits",
    order=0,
    applies=lambda info: info.rows_sum_to_one,
    maximum=lambda info: math.log2(max(2, info.num_keys)),
    sums=lambda block: block.entropy.sum(dim=-1),
    example=Example(((1.0, 0.0, 0.0, 0.0), (0.25, 0.25, 0.25, 0.25)), 1.0, MapInfo(2, 4, on_itself=False)),
)

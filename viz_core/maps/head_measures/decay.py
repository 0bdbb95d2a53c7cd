"""Share of its state that a head keeps from one token to the next: exp(mean_j g_j), of rules with a decay exp(g_j)."""

import math

from viz_core.maps.head_measure import Example, MapInfo, Measure

MEASURE = Measure(
    name="decay",
    unit="share",
    order=13,
    signed=True,
    applies=lambda info: info.decays,
    maximum=lambda _: 1.0,
    sums=lambda block: block.log_decay.sum(dim=-1),
    value=lambda sums, info: (sums / info.num_queries).exp(),
    example=Example(((1.0, 0.0), (0.5, 1.0)), math.exp(-2), MapInfo(2, 2, signed=True, decays=True), ((-1.0, -3.0),)),
)

"""Mutual information of query and key in bits (`query_information`), for maps between two sequences."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.maps.head_measure import Example, MapInfo, Measure
from viz_core.maps.measures import information_of


def _value(sums: Float[Tensor, "heads keys_and_entropy"], info: MapInfo) -> Float[Tensor, " heads"]:
    means = sums / info.num_queries
    return information_of(means[:, :-1], means[:, -1])


MEASURE = Measure(
    name="information",
    unit="bits",
    order=6,
    applies=lambda info: not info.on_itself and info.rows_sum_to_one,
    maximum=lambda info: math.log2(max(2, min(info.num_queries, info.num_keys))),
    # For each head the sum of its rows, then that of their entropies.
    sums=lambda block: torch.cat([block.weights.sum(dim=-2), block.entropy.sum(dim=-1, keepdim=True)], dim=-1),
    value=_value,
    example=Example(((1.0, 0.0), (0.0, 1.0)), 1.0, MapInfo(2, 2, on_itself=False)),
)

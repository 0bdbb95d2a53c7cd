"""Measures of maps between two sequences: mutual information, alignment accuracy."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.maps.head_measure import Example, MapInfo, Measure
from viz_core.maps.measures import information_of


def _information(sums: Float[Tensor, "heads keys_and_entropy"], info: MapInfo) -> Float[Tensor, " heads"]:
    means = sums / info.num_queries
    return information_of(means[:, :-1], means[:, -1])


INFORMATION = Measure(
    name="information",
    unit="bits",
    order=6,
    applies=lambda info: not info.on_itself and info.rows_sum_to_one,
    maximum=lambda info: math.log2(max(2, min(info.num_queries, info.num_keys))),
    # For each head the sum of its rows, then that of their entropies.
    sums=lambda block: torch.cat([block.weights.sum(dim=-2), block.entropy.sum(dim=-1, keepdim=True)], dim=-1),
    value=_information,
    example=Example(((1.0, 0.0), (0.0, 1.0)), 1.0, MapInfo(2, 2, on_itself=False)),
)
"""Mutual information of query and key in bits (`query_information`), for maps between two sequences."""


def _of_two_sequences(info: MapInfo) -> bool:
    return not info.on_itself


WRITTEN = Measure("written", "accuracy", 9, _of_two_sequences, lambda _: 1.0, names_heads=True)
"""1 - alignment error rate for the word that a step writes, as measured for its model: no map has it."""

READ = Measure("read", "accuracy", 10, _of_two_sequences, lambda _: 1.0, names_heads=True)
"""The same for the word that a step has read."""

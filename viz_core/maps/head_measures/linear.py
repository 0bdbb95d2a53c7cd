"""Measures of signed maps, which layers give that are linear in their values."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.maps.head_measure import Example, MapBlock, MapInfo, Measure
from viz_core.maps.measures import weight_shares


def _lengths(block: MapBlock) -> Float[Tensor, " heads"]:
    """sum_ij s_ij (1 + |i - j|), s_ij = |w_ij| / sum_k |w_ik|: 1 / (1 - g) a row for w_ij = g^(i - j)."""
    rows, keys = (torch.arange(size, dtype=block.weights.dtype) for size in block.weights.shape[-2:])
    lengths = 1 + (rows[:, None] + block.first - keys).abs()
    return (weight_shares(block.weights) * lengths).sum(dim=(-2, -1))


MEMORY = Measure(
    name="memory",
    unit="positions",
    order=11,
    signed=True,
    applies=lambda info: info.is_square,
    maximum=lambda info: info.num_keys,
    sums=_lengths,
    example=Example(((-2.0, 0.0), (1.0, -3.0)), 1.125, MapInfo(2, 2, signed=True)),
)
"""Effective memory length: how many tokens back a map reads, weighted by the sizes of its weights."""

NEGATIVE = Measure(
    name="negative",
    unit="share",
    order=12,
    signed=True,
    applies=lambda _: True,
    maximum=lambda _: 1.0,
    sums=lambda block: (weight_shares(block.weights) * (block.weights < 0)).sum(dim=(-2, -1)),
    example=Example(((-2.0, 0.0), (1.0, -3.0)), 0.875, MapInfo(2, 2, signed=True)),
)
"""Share of negative weight: sum_j max(-w_ij, 0) / sum_j |w_ij|, mean over queries; 0 where all weights add."""

DECAY = Measure(
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
"""Share of its state that a head keeps from one token to the next: exp(mean_j g_j), of rules with a decay exp(g_j)."""

"""Effective memory length: how many tokens back a signed map reads, weighted by the sizes of its weights."""

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.maps.head_measure import Example, MapBlock, MapInfo, Measure
from viz_core.maps.measures import weight_shares


def _sums(block: MapBlock) -> Float[Tensor, " heads"]:
    """sum_ij s_ij (1 + |i - j|), s_ij = |w_ij| / sum_k |w_ik|: 1 / (1 - g) a row for w_ij = g^(i - j)."""
    rows, keys = (torch.arange(size, dtype=block.weights.dtype) for size in block.weights.shape[-2:])
    lengths = 1 + (rows[:, None] + block.first - keys).abs()
    return (weight_shares(block.weights) * lengths).sum(dim=(-2, -1))


MEASURE = Measure(
    name="memory",
    unit="positions",
    order=11,
    signed=True,
    applies=lambda info: info.is_square,
    maximum=lambda info: info.num_keys,
    sums=_sums,
    example=Example(((-2.0, 0.0), (1.0, -3.0)), 1.125, MapInfo(2, 2, signed=True)),
)

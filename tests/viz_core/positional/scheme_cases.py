"""Every scheme that enters within attention, small, and what it adds to the scores, entry by entry."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from viz_core.positional import (
    AbsolutePositionEmbedding1d,
    ALiBi,
    PositionScheme,
    RelativePositionEmbedding1d,
    Rotary,
    T5RelativeBias,
)

HEADS, HEAD_DIM, LENGTH = 4, 6, 9

SCHEMES: dict[str, Callable[[], PositionScheme]] = {
    "none": PositionScheme,
    "rotary": Rotary,
    "rotary-half-split": lambda: Rotary(50.0, interleaved=False),
    "alibi": ALiBi,
    "t5": lambda: T5RelativeBias(HEADS, num_buckets=8, max_distance=6),
    "t5-decoder": lambda: T5RelativeBias(HEADS, num_buckets=5, max_distance=6, bidirectional=False),
    "relative": lambda: RelativePositionEmbedding1d(LENGTH, HEAD_DIM),
    "relative-by-head": lambda: RelativePositionEmbedding1d(LENGTH, HEAD_DIM, HEADS),
    "shaw": lambda: RelativePositionEmbedding1d(LENGTH, HEAD_DIM, max_distance=2),
    "absolute": lambda: AbsolutePositionEmbedding1d(LENGTH, HEAD_DIM),
}


@torch.no_grad()
def bias_by_loops(scheme: PositionScheme, queries: Tensor, num_keys: int) -> Tensor:
    """(batch, heads, queries, keys) in float64; queries are the last of the keys, already turned."""
    batch, heads, num_queries, d = queries.shape
    out = torch.zeros(batch, heads, num_queries, num_keys, dtype=torch.float64)
    for h in range(heads):
        for i in range(num_queries):
            for j in range(num_keys):
                offset = j - (num_keys - num_queries + i)
                out[:, h, i, j] = _entry(scheme, queries[:, h, i].double(), h, heads, j, offset, d)
    return out


def _entry(scheme: PositionScheme, q: Tensor, h: int, heads: int, j: int, offset: int, d: int) -> Tensor | float:
    if isinstance(scheme, ALiBi):  # a number of heads that is a power of two
        return -(2.0 ** (-8 * (h + 1) / heads)) * abs(offset)
    if isinstance(scheme, T5RelativeBias):
        from transformers.models.t5.modeling_t5 import T5Attention  # seconds, and few who import the schemes need it

        sizes = (scheme.bidirectional, scheme.num_buckets, scheme.max_distance)
        bucket = T5Attention._relative_position_bucket(torch.tensor([offset]), *sizes)
        return float(scheme.relative_attention_bias.weight[int(bucket), h])
    if isinstance(scheme, AbsolutePositionEmbedding1d):
        return q @ scheme.weight[j].double() / math.sqrt(d)
    if isinstance(scheme, RelativePositionEmbedding1d):
        table = scheme.weight if scheme.weight.dim() == 2 else scheme.weight[h]
        reach = (len(table) - 1) // 2
        return q @ table[max(-reach, min(reach, offset)) + reach].double() / math.sqrt(d)
    return 0.0

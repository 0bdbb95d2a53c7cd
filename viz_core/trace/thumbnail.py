"""Thumbnails of maps of any size, from their rows, a block at a time."""

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


def max_pooled(
    blocks: Iterable[Float[Tensor, "*maps some keys"]], num_queries: int, num_keys: int, size: int, signed: bool = False
) -> Float[Tensor, "*maps rows columns"]:
    """Return the largest weight of each bin of queries and keys, at most `size` bins on a side.

    Bin i of s over n tokens is floor(i n / s) .. ceil((i + 1) n / s) - 1, as in torch's adaptive max-pooling, so
    neighbouring bins may share a token.

    Args:
        blocks: all rows of the maps, from the first query to the last; one block is in memory at a time.
        signed: whether the largest is that of the largest size, with its sign.
    """
    if signed:
        both = max_pooled((torch.cat([each, -each]) for each in blocks), num_queries, num_keys, size)
        return larger_of(*both.chunk(2))
    num_rows, num_columns = min(size, num_queries), min(size, num_keys)
    strongest: list[Tensor] = []  # over the queries of each bin so far
    first = 0
    for weights in blocks:
        last = first + weights.shape[-2]
        if not (num_queries and num_keys):
            return weights.new_zeros(*weights.shape[:-2], num_rows, num_columns)
        if last - first == num_queries:  # one block holds the whole maps
            return F.adaptive_max_pool2d(weights, (num_rows, num_columns))
        for i in range(first * num_rows // num_queries, -(-last * num_rows // num_queries)):
            start, stop = i * num_queries // num_rows, -(-(i + 1) * num_queries // num_rows)
            largest = weights[..., max(0, start - first) : stop - first, :].amax(dim=-2)
            if i < len(strongest):
                strongest[i] = torch.maximum(strongest[i], largest)
            else:
                strongest.append(largest)
        first = last
    return F.adaptive_max_pool2d(torch.stack(strongest, dim=-2), (num_rows, num_columns))


def larger_of(high: Float[Tensor, "*shape"], low: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Return the largest of some numbers, or minus the largest of their negatives, whichever is of larger size."""
    return torch.where(high >= low, high, -low)

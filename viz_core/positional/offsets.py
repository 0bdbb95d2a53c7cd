"""The offset from query to key, on which relative schemes depend."""

import torch
from jaxtyping import Int
from torch import Tensor

from viz_core.trace.arguments import check_whole


def relative_positions(
    num_queries: int, num_keys: int, device: torch.device | None = None
) -> Int[Tensor, "queries keys"]:
    """Position of key j minus position of query i: j - (i + k - q), negative for keys in the past.

    Keys are at positions 0 .. k - 1. Queries are the last q of these, as when a decoder with a cache
    computes its newest steps; with as many queries as keys this is j - i.

    Raises:
        ValueError: if num_queries is not a positive whole number, or num_keys is below num_queries.
    """
    check_whole(num_queries=num_queries, num_keys=num_keys)
    if num_keys < num_queries:
        raise ValueError(f"num_keys: expected at least num_queries={num_queries}, got {num_keys}")
    positions = torch.arange(num_keys, device=device)
    return positions - positions[num_keys - num_queries :, None]

"""Residuals of identities that maps must satisfy: numbers that should be near zero."""

from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.trace import AttentionCall


def row_sum_error(trace: Iterable[AttentionCall], most: int | None = None) -> float:
    """Largest |1 - sum_j a_ij| over every head of every call but signed ones; a row with every key masked counts as 0.

    Args:
        most: only so many of the last queries, which see the most keys; all of them unless given.
    """
    last = slice(None if most is None else -most, None)
    errors = [row_error(call.weights(queries=last)) for call in trace if not call.signed]
    return float(torch.stack(errors).max()) if errors else 0.0


def row_error(weights: Float[Tensor, "*maps queries keys"]) -> Float[Tensor, ""]:
    """Largest |1 - sum_j a_ij| over all rows, NaN if a row has one; a row with every key masked counts as 0."""
    sums = weights.sum(dim=-1)
    return torch.where(sums == 0, 0.0, (sums - 1).abs()).max()


def future_weight(call: AttentionCall, most: int | None = None, first: int = 0) -> float:
    """Largest size of a weight w_ij on a later key, j > i: 0 under a causal mask.

    Args:
        most: only so many of the first queries, which have the most future; all of them unless given.
        first: from this query on, of those that may not look ahead: a prompt may be read in both directions.
    """
    rows = call.weights(queries=slice(first, None if most is None else first + most))
    if not rows.numel():
        return 0.0
    return float(rows.triu(diagonal=1 + first + call.num_keys - call.num_queries).abs().max())

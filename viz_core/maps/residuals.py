"""Residuals of what must be true of the maps of a trace: each is a number that should be near zero."""

from __future__ import annotations

import torch

from viz_core.trace import AttentionCall, Trace


def row_sum_error(trace: Trace, most: int | None = None) -> float:
    """max |1 - sum_j a_ij| over every head of every call; a row that may see no key counts as 0.

    Args:
        most: only so many of the last queries, which see the most keys; all of them unless given.
    """
    worst = 0.0
    for call in trace:
        first = 0 if most is None else max(0, call.num_queries - most)
        sums = call.weights(queries=slice(first, None)).sum(dim=-1)
        worst = max(worst, float(torch.where(sums == 0, 0.0, (sums - 1).abs()).max()))
    return worst


def future_weight(call: AttentionCall, most: int | None = None) -> float:
    """max w_ij over j > i, 0 to 1: the most that a step gives to a key that comes after it.

    Args:
        most: only so many of the first queries, which have the most future; all of them unless given.
    """
    return float(call.weights(queries=slice(0, most)).triu(diagonal=1 + call.num_keys - call.num_queries).max())

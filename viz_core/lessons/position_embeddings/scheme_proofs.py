"""Residuals of claims about single schemes: each should be near zero."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.positional.alibi import alibi_slopes
from viz_core.positional.relative import relative_to_absolute
from viz_core.positional.scheme import relative_positions
from viz_core.positional.t5 import t5_bucket_ranges

# Press 2022, section 3: the slopes of 8 and of 16 heads.
PUBLISHED_SLOPES = {8: tuple(2.0**-i for i in range(1, 9)), 16: tuple(2.0 ** (-i / 2) for i in range(1, 17))}
# Raffel 2020 and the authors' code, 32 buckets in both directions: the nearest distance of buckets 0 to 15.
PUBLISHED_BUCKETS = (*range(8), 8, 12, 16, 23, 32, 46, 64, 91)


def skew_error(num_tokens: int, skew: Callable[[Tensor], Tensor] = relative_to_absolute) -> float:
    """max |result of the skew - scores[i, j - i + n - 1] looked up one by one|, on random scores."""
    scores = torch.randn(num_tokens, 2 * num_tokens - 1, generator=torch.Generator().manual_seed(0))
    indexed = scores.gather(1, relative_positions(num_tokens, num_tokens) + num_tokens - 1)
    return float((skew(scores) - indexed).abs().max())


def row_spread(bias: Float[Tensor, "heads n n"]) -> float:
    """How much the rows of a map differ: max over keys of max - min over queries."""
    return float((bias.amax(dim=1) - bias.amin(dim=1)).max())


def clipping_spread(bias: Float[Tensor, "heads n n"], max_distance: int) -> float:
    """How much the scores of one query differ among keys max_distance or more to one side: 0 if these are all one."""
    offsets = relative_positions(*bias.shape[1:])
    worst = 0.0
    for far in (offsets >= max_distance, offsets <= -max_distance):
        highest = bias.masked_fill(~far, -torch.inf).amax(dim=-1)
        lowest = bias.masked_fill(~far, torch.inf).amin(dim=-1)
        worst = max(worst, float((highest - lowest)[:, far.any(dim=-1)].amax()) if far.any() else 0.0)
    return worst


def slope_error(slopes: Float[Tensor, " heads"]) -> float:
    """max |slopes - the published ones| of 8 or 16 heads."""
    return float((slopes - torch.tensor(PUBLISHED_SLOPES[len(slopes)], dtype=torch.float64)).abs().max())


def evenness_error(penalty: Float[Tensor, "heads n n"]) -> float:
    """max over heads of |penalty - slope * distance|: each step further costs as much as the one before."""
    distance = relative_positions(*penalty.shape[1:]).abs()
    return float((penalty + alibi_slopes(len(penalty))[:, None, None] * distance).abs().max())


def bucket_errors(bidirectional: bool = True) -> int:
    """How many of T5's 16 buckets of one direction begin at another distance than published.

    Args:
        bidirectional: False puts all 32 buckets in one direction, as in a decoder, where they begin elsewhere.
    """
    nearest = {bucket: start for bucket, start, _ in t5_bucket_ranges(bidirectional)}
    return sum(nearest.get(bucket) != start for bucket, start in enumerate(PUBLISHED_BUCKETS))

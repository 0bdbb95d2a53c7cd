"""T5's position bias: one learned number for each head and each bucket of offsets."""

import math

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn

from viz_core.positional.entry import PositionScheme, SchemeCost, SchemeEntry, check_queries, relative_positions
from viz_core.trace.arguments import check_integers, check_whole
from viz_core.trace.weights import Bias


def t5_relative_position_bucket(
    relative_position: Int[Tensor, "*shape"], bidirectional: bool = True, num_buckets: int = 32, max_distance: int = 128
) -> Int[Tensor, "*shape"]:
    """Which bucket an offset from query to key falls into (Raffel 2020, section 2.1, and the authors' code).

    Of the B buckets of one direction the first E = B // 2 hold one distance each; the rest widen
    logarithmically up to max_distance, and the last holds everything beyond:

        distance < E:  distance
        otherwise:     min(E + floor((B - E) log(distance / E) / log(max_distance / E)), B - 1)

    Args:
        relative_position: position of the key minus position of the query.
        bidirectional: True gives each direction num_buckets // 2, the second half to keys after the
            query. False gives all to keys before it; keys after it share bucket 0 with distance 0.
        num_buckets: 32 in T5.
        max_distance: 128 in T5.

    Returns:
        int64, 0 to num_buckets - 1.

    Raises:
        ValueError: if the offsets are not integers, a direction gets fewer than 2 buckets, or max_distance is no larger
            than E.
    """
    _check_buckets(bidirectional, num_buckets, max_distance)
    check_integers(relative_position=relative_position)
    relative_position = relative_position.long()
    if bidirectional:
        num_buckets //= 2
        first = num_buckets * (relative_position > 0)
        distance = relative_position.abs()
    else:
        first = torch.zeros_like(relative_position)
        distance = (-relative_position).clamp(min=0)
    exact = num_buckets // 2
    # float32, as T5 was trained: in another precision a distance on an edge may fall on the other side.
    growth = (distance.clamp(min=exact).float() / exact).log() / math.log(max_distance / exact)
    wide = (exact + (growth * (num_buckets - exact)).long()).clamp(max=num_buckets - 1)
    return first + torch.where(distance < exact, distance, wide)


def t5_bucket_ranges(
    bidirectional: bool = True, num_buckets: int = 32, max_distance: int = 128
) -> tuple[tuple[int, int, int | None], ...]:
    """(bucket, nearest, farthest) distance of keys before the query; None where a bucket has no end.

    A bucket that no distance falls into is left out. Keys after the query have the same ranges,
    num_buckets // 2 buckets further on, where both directions count.
    """
    distances = torch.arange(2 * max_distance)
    buckets = t5_relative_position_bucket(-distances, bidirectional, num_buckets, max_distance).tolist()
    nearest = {bucket: buckets.index(bucket) for bucket in dict.fromkeys(buckets)}
    ends = [distance - 1 for distance in nearest.values()][1:]
    return tuple((bucket, start, end) for (bucket, start), end in zip(nearest.items(), [*ends, None], strict=True))


class T5RelativeBias(nn.Module, PositionScheme):
    """One learned number for each bucket and head, added to the scores (Raffel 2020, section 2.1).

    The parameter is `relative_attention_bias.weight` (num_buckets, num_heads), as in T5. T5 does not
    scale its scores: `attend(..., bias=bias(q, k), scale=1.0)` is its attention.

    Args:
        num_buckets, max_distance, bidirectional: as in `t5_relative_position_bucket`; T5's decoder
            is not bidirectional.

    Raises:
        ValueError: if num_heads is not a positive whole number, or the buckets cannot be made.
    """

    def __init__(
        self, num_heads: int, num_buckets: int = 32, max_distance: int = 128, bidirectional: bool = True
    ) -> None:
        super().__init__()
        check_whole(num_heads=num_heads)
        _check_buckets(bidirectional, num_buckets, max_distance)
        self.num_heads = num_heads
        self.num_buckets = num_buckets
        self.max_distance = max_distance
        self.bidirectional = bidirectional
        self.relative_attention_bias = nn.Embedding(num_buckets, num_heads)

    def forward(self, num_queries: int, num_keys: int) -> Float[Tensor, "1 heads queries keys"]:
        """b_h[bucket(j - i)] for each head h; fewer queries than keys are the last positions, as with a cache."""
        offsets = relative_positions(num_queries, num_keys, self.relative_attention_bias.weight.device)
        buckets = t5_relative_position_bucket(offsets, self.bidirectional, self.num_buckets, self.max_distance)
        bias: Float[Tensor, "queries keys heads"] = self.relative_attention_bias(buckets)
        return rearrange(bias, "queries keys heads -> 1 heads queries keys")

    def bias(self, queries: Float[Tensor, "batch heads queries d"], num_keys: int) -> Bias:
        """The bias for these queries, the last of the keys."""
        check_queries(queries, None, None, self.num_heads)
        return self(queries.shape[2], num_keys)


def _check_buckets(bidirectional: bool, num_buckets: int, max_distance: int) -> None:
    check_whole(num_buckets=num_buckets, max_distance=max_distance)
    directions = 2 if bidirectional else 1
    if num_buckets < 2 * directions:
        raise ValueError(f"num_buckets: expected at least {2 * directions}, got {num_buckets}")
    exact = num_buckets // directions // 2
    if max_distance <= exact:
        raise ValueError(f"max_distance: expected more than {exact}, below which buckets are exact, got {max_distance}")


T5 = SchemeEntry(
    "t5",
    order=9,
    formula=r"\frac{q_i \cdot k_j}{\sqrt{d}} + b_{h,\,\mathrm{bucket}(j - i)}",
    enters="scores",
    depends_on="offset",
    extrapolates=True,
    # B h learned, a number for each bucket and head; h n^2 biases (Raffel 2020, section 2.1).
    cost=lambda sizes: SchemeCost.learned(sizes.num_buckets * sizes.num_heads, sizes.score_map),
    make=lambda sizes: T5RelativeBias(sizes.num_heads, sizes.num_buckets, bidirectional=sizes.bidirectional),
    seed=8,
    task_name="t5",
    code=(T5RelativeBias, t5_relative_position_bucket),
)

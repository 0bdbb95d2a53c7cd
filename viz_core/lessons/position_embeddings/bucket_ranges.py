"""T5's buckets over a range of offsets, for a figure and a table."""

from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from viz_core.positional.t5 import t5_bucket_ranges, t5_relative_position_bucket


class BucketMap(NamedTuple):
    """The bucket of each offset from -reach to reach, and the distances that each bucket of past keys holds.

    Attributes:
        ranges: (bucket, nearest, farthest distance); None where a bucket has no end.
        used: number of buckets that some offset falls into.
        exact: number of buckets that hold a single distance.
    """

    offsets: Int[Tensor, " n"]
    buckets: Int[Tensor, " n"]
    ranges: tuple[tuple[int, int, int | None], ...]
    used: int
    exact: int


def bucket_map(bidirectional: bool, num_buckets: int, max_distance: int) -> BucketMap:
    """Buckets up to a quarter beyond max_distance, where all offsets share the last (Raffel 2020, section 2.1)."""
    reach = max_distance + max_distance // 4
    offsets = torch.arange(-reach, reach + 1)
    buckets = t5_relative_position_bucket(offsets, bidirectional, num_buckets, max_distance)
    ranges = t5_bucket_ranges(bidirectional, num_buckets, max_distance)
    exact = sum(low == high for _, low, high in ranges)
    return BucketMap(offsets, buckets, ranges, len(buckets.unique()), exact)

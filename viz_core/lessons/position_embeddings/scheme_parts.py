"""Parts of three schemes: the skew of relative scores, T5's buckets, and terms of positions on a grid."""

from typing import NamedTuple, cast

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from viz_core.lessons.position_embeddings.shared_layer import SharedLayer
from viz_core.positional import relative_to_absolute_steps
from viz_core.positional.relative_2d import RELATIVE_2D, RelativePositionEmbedding2d
from viz_core.positional.t5 import t5_bucket_ranges, t5_relative_position_bucket

STAGES = ("scores", "padded", "flattened", "extended", "reshaped", "result")


def skew_stages(num_tokens: int) -> dict[str, Int[np.ndarray, "rows columns"]]:
    """Where each entry of the n x (2n - 1) scores is at each stage: i (2n - 1) + c + 1, and 0 for padding."""
    entries = torch.arange(1, num_tokens * (2 * num_tokens - 1) + 1).reshape(num_tokens, -1).float()
    tensors = (entries, *relative_to_absolute_steps(entries))
    return {name: np.atleast_2d(t.numpy()).astype(np.int64) for name, t in zip(STAGES, tensors, strict=True)}


def offsets_of(entries: Int[np.ndarray, "rows columns"], num_tokens: int) -> Float[np.ndarray, "rows columns"]:
    """The offset c - (n - 1) that each entry stands for; NaN for padding."""
    columns = (entries - 1) % (2 * num_tokens - 1)
    return np.where(entries > 0, columns - (num_tokens - 1), np.nan).astype(np.float32)


class BucketMap(NamedTuple):
    """The bucket of each offset from -reach to reach, and the distances that each bucket of past keys holds."""

    offsets: Int[Tensor, " n"]
    buckets: Int[Tensor, " n"]
    # (bucket, nearest, farthest distance); None where a bucket has no end
    ranges: tuple[tuple[int, int, int | None], ...]
    used: int  # number of buckets that some offset falls into
    exact: int  # number of buckets that hold a single distance


def bucket_map(bidirectional: bool, num_buckets: int, max_distance: int) -> BucketMap:
    """Buckets up to a quarter beyond max_distance, where all offsets share the last (Raffel 2020, section 2.1)."""
    reach = max_distance + max_distance // 4
    offsets = torch.arange(-reach, reach + 1)
    buckets = t5_relative_position_bucket(offsets, bidirectional, num_buckets, max_distance)
    ranges = t5_bucket_ranges(bidirectional, num_buckets, max_distance)
    exact = sum(low == high for _, low, high in ranges)
    return BucketMap(offsets, buckets, ranges, len(buckets.unique()), exact)


class GridTerms(NamedTuple):
    """Offsets of every cell from one query cell, down and across, and what these add to its score."""

    row_offsets: Int[Tensor, "height width"]
    column_offsets: Int[Tensor, "height width"]
    row_term: Float[Tensor, "height width"]
    column_term: Float[Tensor, "height width"]

    @property
    def total(self) -> Float[Tensor, "height width"]:
        """row term + column term."""
        return self.row_term + self.column_term


@torch.no_grad()
def grid_terms(
    q: Float[Tensor, "heads tokens d"], module: RelativePositionEmbedding2d, row: int, column: int, head: int = 0
) -> GridTerms:
    """q . r_(row offset) / sqrt(d) and q . c_(column offset) / sqrt(d) for the query at (row, column).

    Looks up every vector in the tables by its offset, without the skew that the module uses.
    """
    height, width = module.height, module.width
    query = q[head, row * width + column]
    down = torch.arange(height) - row
    across = torch.arange(width) - column
    scale = query.shape[0] ** -0.5
    by_row = _table(module.rows.weight, head)[down + height - 1] @ query * scale
    by_column = _table(module.columns.weight, head)[across + width - 1] @ query * scale
    parts = (down[:, None], across, by_row[:, None], by_column)
    return GridTerms(*(part.expand(height, width) for part in parts))


def layer_terms(
    layer: SharedLayer, row: int, column: int, head: int = 0
) -> tuple[GridTerms, Float[Tensor, "height width"]]:
    """`grid_terms` of the 2-D scheme in a layer, and what its module adds to the scores of the same query."""
    sizes = layer.sizes
    module = cast(RelativePositionEmbedding2d, layer.make(RELATIVE_2D))
    q, _, _, bias = layer.project(RELATIVE_2D)
    added = bias[0, head, row * sizes.width + column].reshape(sizes.height, sizes.width)
    return grid_terms(q[0], module, row, column, head), added


def _table(weight: Tensor, head: int) -> Float[Tensor, "offsets d"]:
    """A head's table, or the one that all heads share."""
    return weight if weight.dim() == 2 else weight[head]


def column_major(terms: GridTerms) -> GridTerms:
    """The terms where the column term is laid out column by column: a bug in AI Summer's article.

    Tokens are laid out row by row, so on any grid with two rows and two columns the column term lands on other cells.
    """
    height, width = terms.column_term.shape
    return terms._replace(column_term=terms.column_term.T.reshape(height, width))

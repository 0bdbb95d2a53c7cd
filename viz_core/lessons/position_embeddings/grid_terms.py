"""What one cell of a grid adds to its scores with every other cell: a row term, a column term, their sum."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from viz_core.positional.relative_2d import RelativePositionEmbedding2d


class GridTerms(NamedTuple):
    """For one query cell: how far every cell is down and across, and what these offsets add to its score."""

    row_offsets: Int[Tensor, "height width"]
    column_offsets: Int[Tensor, "height width"]
    row_term: Float[Tensor, "height width"]
    column_term: Float[Tensor, "height width"]

    @property
    def total(self) -> Float[Tensor, "height width"]:
        """row term + column term: what each cell's score gains."""
        return self.row_term + self.column_term


@torch.no_grad()
def grid_terms(
    q: Float[Tensor, "heads tokens d"], module: RelativePositionEmbedding2d, row: int, column: int, head: int = 0
) -> GridTerms:
    """q . r_(row offset) / sqrt(d) and q . c_(column offset) / sqrt(d) for the query at (row, column).

    Looks every vector up in the tables by its offset, without the skew that the module uses.

    Raises:
        ValueError: if there is no such cell.
    """
    height, width = module.height, module.width
    if not (0 <= row < height and 0 <= column < width):
        raise ValueError(f"cell: expected a row below {height} and a column below {width}, got ({row}, {column})")
    query = q[head, row * width + column]
    down = torch.arange(height) - row
    across = torch.arange(width) - column
    scale = query.shape[0] ** -0.5
    by_row = _table(module.rows.weight, head)[down + height - 1] @ query * scale
    by_column = _table(module.columns.weight, head)[across + width - 1] @ query * scale
    return GridTerms(
        down[:, None].expand(height, width),
        across.expand(height, width),
        by_row[:, None].expand(height, width),
        by_column.expand(height, width),
    )


def _table(weight: Tensor, head: int) -> Float[Tensor, "offsets d"]:
    """A head's table, or the one that all heads share."""
    return weight if weight.dim() == 2 else weight[head]

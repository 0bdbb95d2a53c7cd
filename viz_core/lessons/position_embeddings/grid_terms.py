"""What relative positions on a grid add to the scores of one query cell: a row term, a column term, their sum."""

from typing import NamedTuple, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor

from viz_core.lessons.position_embeddings.shared_layer import SharedLayer
from viz_core.positional.relative_2d import RELATIVE_2D, RelativePositionEmbedding2d


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
    return GridTerms(
        down[:, None].expand(height, width),
        across.expand(height, width),
        by_row[:, None].expand(height, width),
        by_column.expand(height, width),
    )


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


def column_major_total(terms: GridTerms) -> Float[Tensor, "height width"]:
    """Row term plus column term where columns are laid out one after the other: a bug in AI Summer's article.

    Tokens are laid out row by row, so on any grid with two rows and two columns the column term lands on other cells.
    """
    height, width = terms.column_term.shape
    return terms.row_term + terms.column_term.T.reshape(height, width)

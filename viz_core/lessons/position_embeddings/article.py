"""A bug in AI Summer's article on position embeddings: its column term is added to the wrong cells."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from viz_core.lessons.position_embeddings.grid_terms import GridTerms


def column_major_total(terms: GridTerms) -> Float[Tensor, "height width"]:
    """Row term plus column term where the columns are laid out one after the other, as the article flattens them.

    Tokens are laid out row by row, so on any grid with two rows and two columns the column term lands on other cells.
    """
    height, width = terms.column_term.shape
    return terms.row_term + terms.column_term.T.reshape(height, width)

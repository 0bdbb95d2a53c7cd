"""A product of batches of small whole numbers, one entry of it written out."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.attention.scores import batch_product


class BatchProduct(NamedTuple):
    """Z = X Y, one matrix product for each batch row."""

    X: Float[Tensor, "batch n m"]
    Y: Float[Tensor, "batch m p"]
    Z: Float[Tensor, "batch n p"]

    def factors(self, batch: int, row: int, column: int) -> list[tuple[float, float]]:
        """The pairs whose products add up to Z[batch, row, column]."""
        return list(zip(self.X[batch, row].tolist(), self.Y[batch, :, column].tolist(), strict=True))

    @property
    def sheet_error(self) -> float:
        """max |Z - the products of the batch rows, one by one|."""
        one_by_one = torch.stack([x @ y for x, y in zip(self.X, self.Y, strict=True)])
        return float((self.Z - one_by_one).abs().max())


def whole_number_product(b: int, n: int, m: int, inner: int, p: int) -> BatchProduct:
    """(b, n, m) times (b, inner, p), of whole numbers from -2 to 3."""
    X, Y = (
        torch.randint(-2, 4, (b, *shape), generator=torch.Generator().manual_seed(seed)).float()
        for seed, shape in enumerate(((n, m), (inner, p)))
    )
    return BatchProduct(X, Y, batch_product(X, Y))

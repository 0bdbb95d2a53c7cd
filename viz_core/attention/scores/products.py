"""Products of batches of matrices, which scoring functions are made of."""

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.trace.arguments import check_axes, check_tensors


def batch_product(X: Float[Tensor, "batch n m"], Y: Float[Tensor, "batch m p"]) -> Float[Tensor, "batch n p"]:
    """Z_b = X_b Y_b, one matrix product for each b: Z[b, i, j] = sum_l X[b, i, l] Y[b, l, j].

    (Dive into Deep Learning, section "Batch Matrix Multiplication".)

    Raises:
        ValueError: if either is not a batch of matrices of floating-point numbers, they differ in type or device, the
            batches differ in size, or X has not as many columns as Y has rows.
    """
    check_tensors(X=X, Y=Y)
    if X.dim() != 3 or Y.dim() != 3:
        raise ValueError(f"expected two batches of matrices, got shapes {tuple(X.shape)} and {tuple(Y.shape)}")
    if X.shape[0] != Y.shape[0]:
        raise ValueError(f"expected batches of one size, got {X.shape[0]} and {Y.shape[0]}")
    if X.shape[2] != Y.shape[1]:
        raise ValueError(f"expected as many columns in X as rows in Y, got {X.shape[2]} and {Y.shape[1]}")
    return torch.bmm(X, Y)


def check_same_width(queries: Tensor, keys: Tensor) -> None:
    """Raise ValueError unless queries and keys are (..., n, width) of one width, type and device."""
    check_tensors(queries=queries, keys=keys)
    check_axes("... n width", queries=queries, keys=keys)
    if queries.shape[-1] != keys.shape[-1]:
        raise ValueError(f"expected queries and keys of one width, got {queries.shape[-1]} and {keys.shape[-1]}")

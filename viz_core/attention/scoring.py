"""Scoring functions: how well a query and a key fit, as one number for every pair."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.trace.arguments import check_axes, check_tensors

Queries = Float[Tensor, "batch queries d"]
Keys = Float[Tensor, "batch keys d"]
Scores = Float[Tensor, "batch queries keys"]


def batch_product(X: Float[Tensor, "batch n m"], Y: Float[Tensor, "batch m p"]) -> Float[Tensor, "batch n p"]:
    """Z_b = X_b Y_b, one matrix product for each b: Z[b, i, j] = sum_l X[b, i, l] Y[b, l, j].

    (Dive into Deep Learning, section "Batch Matrix Multiplication".)

    Raises:
        ValueError: if either is no batch of matrices of floating-point numbers, they differ in type or device, the
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


def dot_scores(queries: Queries, keys: Keys) -> Scores:
    """a(q, k) = q^T k: no parameters, and one width for both (Luong 2015, equation 8, "dot").

    Raises:
        ValueError: if queries and keys differ in width or batch size.
    """
    check_same_width(queries, keys)
    return batch_product(queries, keys.transpose(1, 2))


def scaled_dot_scores(queries: Queries, keys: Keys) -> Scores:
    """a(q, k) = q^T k / sqrt(d): of variance 1 where q and k have entries of mean 0 and variance 1.

    (Vaswani 2017, section 3.2.1.)

    Raises:
        ValueError: if queries and keys differ in width or batch size.
    """
    return dot_scores(queries, keys) / math.sqrt(queries.shape[-1])


def general_scores(
    queries: Float[Tensor, "batch queries query_size"],
    keys: Float[Tensor, "batch keys key_size"],
    M: Float[Tensor, "query_size key_size"],
) -> Scores:
    """a(q, k) = q^T M k: a learned matrix stands between them, so their widths may differ.

    (Luong 2015, equation 8, "general". With M = W_q^T W_k it is the dot product of two projections,
    which is what every head of a Transformer computes.)

    Raises:
        ValueError: if M is not (query_size, key_size), the batch sizes differ, or one of the three is no floating-point
            tensor of the others' type and device.
    """
    check_tensors(queries=queries, keys=keys, M=M)
    check_axes("batch n width", queries=queries, keys=keys)
    expected = (queries.shape[-1], keys.shape[-1])
    if tuple(M.shape) != expected:
        raise ValueError(f"M: expected shape {expected}, got {tuple(M.shape)}")
    return batch_product(queries @ M, keys.transpose(1, 2))


def check_same_width(queries: Tensor, keys: Tensor) -> None:
    """Refuse queries and keys that have no dot product.

    Raises:
        ValueError: if they are no floating-point tensors (..., n, width) of one type and device, or differ in width.
    """
    check_tensors(queries=queries, keys=keys)
    check_axes("... n width", queries=queries, keys=keys)
    if queries.shape[-1] != keys.shape[-1]:
        raise ValueError(f"expected queries and keys of one width, got {queries.shape[-1]} and {keys.shape[-1]}")

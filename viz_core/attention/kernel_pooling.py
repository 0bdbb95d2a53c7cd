"""Attention before there was a name for it: regression by a kernel between a query and the keys (Nadaraya-Watson)."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.attention.kernels import Gaussian, Kernel
from viz_core.trace import record_weights


def nadaraya_watson(
    x_train: Float[Tensor, "train"],
    y_train: Float[Tensor, "train"],
    x_val: Float[Tensor, "val"],
    kernel: Kernel,
    site: str | None = None,
) -> tuple[Float[Tensor, "val"], Float[Tensor, "val train"]]:
    """Pool the values y_train for each query in x_val by how near the keys x_train are.

    y_hat(q) = sum_i a(q, x_i) y_i  with  a(q, x_i) = K(|q - x_i|) / sum_j K(|q - x_j|)
    (Nadaraya 1964, Watson 1964; Dive into Deep Learning, section "Attention Pooling by Similarity").

    Args:
        x_train, y_train: keys and their values.
        x_val: queries.
        kernel: of the distance, see `viz_core.attention.kernels`.
        site: the name under which `viz_core.trace.record` keeps the weights.

    Returns:
        y_hat, and the weights, whose rows sum to 1. A query that no key reaches, 0/0 in the
        formula, has NaN in y_hat and zeros in its row.

    Raises:
        ValueError: if there is no key, keys and values differ in number, or the kernel is negative.
    """
    if len(x_train) == 0:
        raise ValueError("x_train: expected at least one key, got none")
    if x_train.shape != y_train.shape:
        raise ValueError(f"expected one value for each key, got {len(x_train)} keys and {len(y_train)} values")
    weights = kernel_weights((x_val[:, None] - x_train).abs(), kernel)
    record_weights(weights[None, None], site)
    reached = weights.any(dim=-1)
    return torch.where(reached, weights @ y_train, torch.nan), weights


def kernel_weights(distances: Float[Tensor, "val train"], kernel: Kernel) -> Float[Tensor, "val train"]:
    """The kernel's values, each row divided by its sum; a row that sums to 0 stays zeros.

    An infinite distance means that a query may not use that key.

    Raises:
        ValueError: if the kernel is negative somewhere.
    """
    if isinstance(kernel, Gaussian):  # a softmax, which subtracts the largest score first: nothing underflows
        return torch.softmax(kernel.log(distances), dim=-1).nan_to_num(0.0)
    allowed = distances.isfinite()
    nearness = torch.where(allowed, kernel(distances.masked_fill(~allowed, 0.0)), 0.0)
    if (nearness < 0).any():
        raise ValueError(f"kernel: expected values of at least 0, got {float(nearness.min()):g}")
    total = nearness.sum(dim=-1, keepdim=True)
    return torch.where(total > 0, nearness / total.clamp_min(torch.finfo(total.dtype).tiny), 0.0)

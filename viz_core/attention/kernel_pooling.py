"""Nadaraya-Watson regression: attention weights from a kernel of the distance between query and key."""

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.attention.kernels import Gaussian, Kernel
from viz_core.trace import record_weights
from viz_core.trace.arguments import check_device, check_tensors, described
from viz_core.trace.weights import row_softmax


def nadaraya_watson(
    x_train: Float[Tensor, " train *d"],
    y_train: Float[Tensor, " train *v"],
    x_val: Float[Tensor, " val *d"],
    kernel: Kernel,
    site: str | None = None,
) -> tuple[Float[Tensor, " val *v"], Float[Tensor, "val train"]]:
    """Return the mean of y_train for each query in x_val, weighted by a kernel of the distance to the keys x_train.

    y_hat(q) = sum_i a(q, x_i) y_i  with  a(q, x_i) = K(|q - x_i|) / sum_j K(|q - x_j|)
    (Nadaraya 1964, Watson 1964; Dive into Deep Learning, section "Attention Pooling by Similarity").

    With one-hot values it classifies: y_hat is then each label's share of the weight.

    Args:
        x_train, y_train: keys and their values, each a number or a vector; |.| is the Euclidean distance.
        x_val: queries, like the keys.
        kernel: of the distance, see `viz_core.attention.kernels`.
        site: the name of the weights in a trace.

    Returns:
        y_hat, and the weights, whose rows sum to 1. A query at which every kernel value is 0, 0/0 in the
        formula, has NaN in y_hat and zeros in its row.

    Raises:
        ValueError: if keys, queries and values are not floating-point tensors on one device, keys and queries of one
            type; there is no key; keys and values differ in number, keys and queries in width; or the kernel is no
            function, or negative.
    """
    check_tensors(x_train=x_train, x_val=x_val)
    check_tensors(y_train=y_train)
    check_device(x_train=x_train, y_train=y_train)
    shapes = f"got keys {tuple(x_train.shape)}, values {tuple(y_train.shape)} and queries {tuple(x_val.shape)}"
    if not 1 <= x_train.dim() <= 2 or not 1 <= y_train.dim() <= 2 or x_val.dim() != x_train.dim():
        raise ValueError(f"expected a number or a vector for each key, value and query, {shapes}")
    if len(x_train) == 0:
        raise ValueError("x_train: expected at least one key, got none")
    if len(x_train) != len(y_train):
        raise ValueError(f"expected one value for each key, {shapes}")
    if x_train.shape[1:] != x_val.shape[1:]:
        raise ValueError(f"expected keys and queries of one width, {shapes}")
    weights = kernel_weights(_distances(x_val, x_train), kernel)
    record_weights(weights[None, None], site)
    reached = weights.any(dim=-1)
    y_hat = weights.to(y_train.dtype) @ y_train
    return torch.where(reached if y_hat.dim() == 1 else reached[:, None], y_hat, torch.nan), weights


def _distances(x_val: Float[Tensor, " val *d"], x_train: Float[Tensor, " train *d"]) -> Float[Tensor, "val train"]:
    if x_val.dim() == 1:
        return (x_val[:, None] - x_train).abs()
    return torch.cdist(x_val, x_train, compute_mode="donot_use_mm_for_euclid_dist")  # the matrix product loses digits


def kernel_weights(distances: Float[Tensor, "val train"], kernel: Kernel) -> Float[Tensor, "val train"]:
    """Return a_ij = K(u_ij) / sum_l K(u_il) for distances u (Nadaraya 1964, Watson 1964).

    A row that sums to 0 is zeros. An infinite distance masks the key.

    Raises:
        ValueError: if distances are no floating-point tensor, or the kernel is no function that gives a finite number
            of at least 0 for each.
    """
    check_tensors(distances=distances)
    if not callable(kernel):
        raise ValueError(f"kernel: expected a function of distances, got {described(kernel)}")
    if isinstance(kernel, Gaussian):  # a softmax, which subtracts the largest score first: nothing underflows
        return row_softmax(kernel.log(distances))
    allowed = distances.isfinite()
    values = kernel(distances.masked_fill(~allowed, 0.0))
    if not isinstance(values, Tensor) or values.shape != distances.shape:
        raise ValueError(f"kernel: expected a value for each of {tuple(distances.shape)}, got {described(values)}")
    similarity = torch.where(allowed, values, 0.0)
    possible = similarity.isfinite() & (similarity >= 0)
    if not possible.all():
        came = float(similarity[~possible][0])
        raise ValueError(f"kernel: expected finite values of at least 0, got {came:g}")
    total = similarity.sum(dim=-1, keepdim=True)
    return torch.where(total > 0, similarity / total.clamp_min(torch.finfo(total.dtype).tiny), 0.0)

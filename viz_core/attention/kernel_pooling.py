"""Kernels, the unnormalised weight of a key by its distance from the query, and Nadaraya-Watson regression by them.

Each kernel is largest at distance 0, never negative, and of width 1; `with_width` stretches it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.trace import record_weights
from viz_core.trace.arguments import check_device, check_positive_number, check_tensors, described
from viz_core.trace.weights import row_softmax

Kernel: TypeAlias = Callable[[Float[Tensor, "..."]], Float[Tensor, "..."]]


def boxcar(distances: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """K(u) = 1 if |u| <= 1, else 0: every key within distance 1 has the same weight.

    (Dive into Deep Learning, section "Kernels and Data"; its text has <= 1 as here, its code < 1.)
    """
    check_tensors(distances=distances)
    return (distances.abs() <= 1).to(distances.dtype)


def constant(distances: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """K(u) = 1 at any distance: every key has the same weight.

    (Average pooling: Dive into Deep Learning, section "Attention Pooling by Similarity".)
    """
    check_tensors(distances=distances)
    return torch.ones_like(distances)


def triangular(distances: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """K(u) = max(0, 1 - |u|), which Dive into Deep Learning calls "Epanechikov" (section "Kernels and Data")."""
    check_tensors(distances=distances)
    return (1 - distances.abs()).clamp_min(0)


def epanechnikov(distances: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """K(u) = max(0, 3/4 (1 - u^2)): a parabola cut off at 0 (Epanechnikov 1969)."""
    check_tensors(distances=distances)
    return 0.75 * (1 - distances.square()).clamp_min(0)


@dataclass(frozen=True)
class Gaussian:
    """K(u) = exp(-u^2 / (2 sigma^2)), with its logarithm: far from all keys exp underflows, a softmax does not."""

    sigma: float

    def __call__(self, distances: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """K(u), 0 to 1."""
        return self.log(distances).exp()

    def log(self, distances: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """-1/2 (u / sigma)^2: the score whose softmax is the weights."""
        check_tensors(distances=distances)
        return -0.5 * (distances / self.sigma).square()


def gaussian(sigma: float = 1.0) -> Gaussian:
    """The Gaussian kernel K(u) = exp(-u^2 / (2 sigma^2)) (Dive into Deep Learning, section "Kernels and Data").

    Args:
        sigma: the width, in units of the distance.

    Raises:
        ValueError: if sigma is not a positive number.
    """
    check_positive_number(sigma=sigma)
    return Gaussian(sigma)


def with_width(kernel: Kernel, width: float) -> Kernel:
    """Return the kernel stretched to a width: u -> kernel(u / width).

    Raises:
        ValueError: if width is not a positive number, or the kernel no function.
    """
    check_positive_number(width=width)
    if not callable(kernel):
        raise ValueError(f"kernel: expected a function of distances, got {described(kernel)}")
    if isinstance(kernel, Gaussian):
        return gaussian(kernel.sigma * width)
    return lambda distances: kernel(distances / width)


KERNELS: dict[str, Kernel] = {
    "gaussian": gaussian(),
    "boxcar": boxcar,
    "constant": constant,
    "triangular": triangular,
    "epanechnikov": epanechnikov,
}
"""Every kernel by name, at width 1."""


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
        kernel: of the distance, see `KERNELS`.
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
        ValueError: if distances are not a floating-point tensor, or the kernel is not a function that gives a finite
            number of at least 0 for each.
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

"""Kernels: the unnormalised weight of a key as a function of its distance from the query.

Each is largest at distance 0, never negative, and of width 1; `with_width` stretches it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.trace.arguments import check_positive_number, check_tensors, described

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

"""Kernels: how much a key counts by its distance from the query, before weights are made to sum to one.

All are 1 or near it at distance 0 and never negative. Each is for width 1; `with_width` stretches it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

Kernel: TypeAlias = Callable[[Float[Tensor, "..."]], Float[Tensor, "..."]]


def boxcar(distances: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """K(u) = 1 if |u| <= 1, else 0: every key within reach counts alike.

    (Dive into Deep Learning, section "Kernels and Data"; its text has <= 1 as here, its code < 1.)
    """
    return (distances.abs() <= 1).to(distances.dtype)


def constant(distances: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """K(u) = 1 at any distance: every key counts alike, wherever the query is. Average pooling."""
    return torch.ones_like(distances)


def triangular(distances: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """K(u) = max(0, 1 - |u|), which Dive into Deep Learning calls "Epanechikov"."""
    return (1 - distances.abs()).clamp_min(0)


def epanechnikov(distances: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """K(u) = max(0, 3/4 (1 - u^2)): a parabola cut off at 0 (Epanechnikov 1969)."""
    return 0.75 * (1 - distances.square()).clamp_min(0)


@dataclass(frozen=True)
class Gaussian:
    """exp(-u^2 / (2 sigma^2)). Its logarithm is kept too: far from all keys exp underflows, softmax does not."""

    sigma: float

    def __call__(self, distances: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        return self.log(distances).exp()

    def log(self, distances: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """-1/2 (u / sigma)^2: the score of which softmax makes the weights."""
        return -0.5 * (distances / self.sigma).square()


def gaussian(sigma: float = 1.0) -> Gaussian:
    """The Gaussian kernel exp(-u^2 / (2 sigma^2)).

    Args:
        sigma: the width, in units of the distance.

    Raises:
        ValueError: if sigma is not a positive number.
    """
    _check_width("sigma", sigma)
    return Gaussian(sigma)


def with_width(kernel: Kernel, width: float) -> Kernel:
    """The kernel stretched to a width: u -> kernel(u / width).

    Raises:
        ValueError: if width is not a positive number.
    """
    _check_width("width", width)
    if isinstance(kernel, Gaussian):
        return gaussian(kernel.sigma * width)
    return lambda distances: kernel(distances / width)


def _check_width(name: str, width: float) -> None:
    if not (math.isfinite(width) and width > 0):
        raise ValueError(f"{name}: expected a positive number, got {width}")


KERNELS: dict[str, Kernel] = {
    "gaussian": gaussian(),
    "boxcar": boxcar,
    "constant": constant,
    "triangular": triangular,
    "epanechnikov": epanechnikov,
}
"""Every kernel by name, at width 1."""

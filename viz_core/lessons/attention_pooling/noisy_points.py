"""The data that the book fits: a known curve, and points around it."""

import torch
from jaxtyping import Float
from torch import Tensor

SPAN = 5.0
"""Keys lie in [0, SPAN)."""


def book_curve(x: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    """f(x) = 2 sin x + x (Dive into Deep Learning, section "Kernels and Data")."""
    return 2 * torch.sin(x) + x


def noisy_points(n: int = 40, noise: float = 1.0, seed: int = 0) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
    """n keys drawn evenly from [0, 5), in order, and y = f(x) + noise N(0, 1), in float64.

    The places and the unit noise depend on n and the seed alone, so more noise moves each point further the same way.
    """
    generator = torch.Generator().manual_seed(seed)
    x = (SPAN * torch.rand(n, generator=generator, dtype=torch.float64)).sort().values
    return x, book_curve(x) + noise * torch.randn(n, generator=generator, dtype=torch.float64)


def mean_squared_distance(y_hat: Float[Tensor, " n"], x: Float[Tensor, " n"]) -> float:
    """The mean of (y_hat - f(x))^2: how far a fit is from the curve behind the points; NaN where the fit has a gap."""
    return float((y_hat - book_curve(x)).square().mean())

"""More data and a narrower kernel: the fit comes as near to the curve as one likes; with a fixed width it does not."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.attention.kernel_pooling import nadaraya_watson
from viz_core.attention.kernels import gaussian
from viz_core.lessons.attention_pooling.noisy_points import SPAN, mean_squared_distance, noisy_points

FIXED = 0.5
_QUERIES = torch.linspace(0, SPAN, 101, dtype=torch.float64)


def shrinking_width(n: int) -> float:
    """h = n^(-1/5): narrower with more data, yet slowly enough that more points fall within it each time.

    The rate at which squared bias, h^4, and variance, 1/(n h), fall together (Silverman 1986, section 3.3).
    """
    return float(n**-0.2)


def errors_by_size(
    sizes: Sequence[int], noise: float = 1.0, draws: int = 10
) -> tuple[Float[Tensor, "sizes"], Float[Tensor, "sizes"]]:
    """Mean squared distance from the curve by the number of points: with a shrinking width, and with a fixed one.

    Means over draws; Gaussian kernel (Mack and Silverman 1982 prove that the first goes to 0).

    Raises:
        ValueError: if there is no draw.
    """
    if draws < 1:
        raise ValueError(f"draws: expected at least 1, got {draws}")

    def error(n: int, width: float) -> float:
        found = []
        for seed in range(draws):
            x, y = noisy_points(n, noise, seed)
            found.append(mean_squared_distance(nadaraya_watson(x, y, _QUERIES, gaussian(width))[0], _QUERIES))
        return sum(found) / draws

    shrinking = [error(n, shrinking_width(n)) for n in sizes]
    fixed = [error(n, FIXED) for n in sizes]
    return torch.tensor(shrinking, dtype=torch.float64), torch.tensor(fixed, dtype=torch.float64)

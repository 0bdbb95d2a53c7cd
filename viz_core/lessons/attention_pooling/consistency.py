"""More data and a narrower kernel: the fit comes as near to the curve as one likes; with a fixed width it does not."""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from viz_core.attention.kernel_pooling import gaussian, nadaraya_watson
from viz_core.lessons.attention_pooling.curve_fit import SPAN, mean_squared_distance, noisy_points

_QUERIES = torch.linspace(1, SPAN - 1, 61, dtype=torch.float64)  # at the ends all points are on one side


def shrinking_width(n: int) -> float:
    """h = n^(-1/5): narrower with more data, yet slowly enough that more points fall within it each time.

    The rate at which squared bias, h^4, and variance, 1/(n h), fall together (Silverman 1986, section 3.3).
    """
    return float(n**-0.2)


class Rate(NamedTuple):
    """A width h = h_0 (n / n_0)^(-p) at the last n: the error there, and how many points lie within it on average."""

    width: float
    error: float
    within: float


@torch.no_grad()
def errors_by_rate(
    powers: Sequence[float], first: int, last: int, noise: float = 1.0, draws: int = 10
) -> dict[float, Rate]:
    """What each power p comes to at `last` points, all from the width `shrinking_width(first)` at `first` points.

    Too fast, and no more points lie within the width than before: the noise stays. Not at all, and the bend of the
    curve is smoothed away: the bias stays (Dive into Deep Learning, section 11.2, exercise 4).
    """
    found = {}
    for power in powers:
        width = shrinking_width(first) * (last / first) ** -power
        found[power] = Rate(width, _error(last, width, noise, draws), last * 2 * width / SPAN)
    return found


def _error(n: int, width: float, noise: float, draws: int) -> float:
    """Mean squared distance from the curve of a Gaussian fit, mean over draws."""
    found = []
    for seed in range(draws):
        x, y = noisy_points(n, noise, seed)
        found.append(mean_squared_distance(nadaraya_watson(x, y, _QUERIES, gaussian(width))[0], _QUERIES))
    return sum(found) / draws

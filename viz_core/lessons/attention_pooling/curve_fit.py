"""Kernel pooling of points around the book's curve: fits, the choice of a width, and Gaussian pooling as attention."""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.attention.kernel_pooling import KERNELS, Kernel, kernel_weights, nadaraya_watson, with_width
from viz_core.lessons.attention_pooling.broken import unguarded_weights
from viz_core.trace import attend

Train: TypeAlias = Float[Tensor, " train"]
Widths: TypeAlias = Float[Tensor, " widths"]

SPAN = 5.0
"""Keys lie in [0, SPAN)."""


def book_curve(x: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    """f(x) = 2 sin x + x (Dive into Deep Learning, section "Kernels and Data")."""
    return 2 * torch.sin(x) + x


def noisy_points(n: int = 40, noise: float = 1.0, seed: int = 0) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
    """n keys drawn evenly from [0, 5), in order, and y = f(x) + noise N(0, 1); more noise moves each further alike."""
    generator = torch.Generator().manual_seed(seed)
    x = (SPAN * torch.rand(n, generator=generator, dtype=torch.float64)).sort().values
    return x, book_curve(x) + noise * torch.randn(n, generator=generator, dtype=torch.float64)


def mean_squared_distance(y_hat: Float[Tensor, " n"], x: Float[Tensor, " n"]) -> float:
    """The mean of (y_hat - f(x))^2: how far a fit is from the curve behind the points; NaN where the fit has a gap."""
    return float((y_hat - book_curve(x)).square().mean())


_GOLDEN = (math.sqrt(5) - 1) / 2


def leave_one_out(x_train: Train, y_train: Train, kernel: Kernel) -> Train:
    """y_i - y_hat_(-i)(x_i): the error at every point when the fit has not seen it; NaN if no other key reaches it."""
    distances = (x_train[:, None] - x_train).abs().fill_diagonal_(math.inf)  # out of its own reach
    weights = kernel_weights(distances, kernel)
    return torch.where(weights.any(dim=-1), y_train - weights @ y_train, torch.nan)


class WidthSearch(NamedTuple):
    """The widths tried, their errors, and the best width."""

    widths: Widths
    # mean squared leave-one-out error of each width; NaN where it leaves a point that no other reaches, because a mean
    # over fewer points could not be compared
    errors: Widths
    best: float  # the width with the smallest error
    error: float  # that error


def learn_width(x_train: Train, y_train: Train, kernel: Kernel, widths: Widths, steps: int = 24) -> WidthSearch:
    """The width of smallest mean squared leave-one-out error: over a rising grid, then between its best's neighbours.

    The second part is a golden-section search in log width (Kiefer 1953).
    """

    def error(width: float) -> float:
        return float(leave_one_out(x_train, y_train, with_width(kernel, width)).square().mean())

    errors = torch.tensor([error(float(width)) for width in widths], dtype=torch.float64)
    if errors.isnan().all():
        raise ValueError(f"widths: expected one at which every point has a neighbour, got up to {float(widths[-1]):g}")
    place = int(errors.nan_to_num(math.inf).argmin())
    tried = [(float(errors[place]), float(widths[place]))]
    low, high = (math.log(float(widths[min(max(i, 0), len(widths) - 1)])) for i in (place - 1, place + 1))
    for _ in range(steps):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        at_left, at_right = error(math.exp(left)), error(math.exp(right))
        tried += [(at_left, math.exp(left)), (at_right, math.exp(right))]
        if at_left <= at_right:  # NaN, a point unreached at the smaller width, sends the search to the right
            high = right
        else:
            low = left
    best_error, best = min(pair for pair in tried if not math.isnan(pair[0]))
    return WidthSearch(widths, errors, best, best_error)


def gaussian_pooling_as_attention(
    x_train: Float[Tensor, " train"],
    y_train: Float[Tensor, " train"],
    x_val: Float[Tensor, " val"],
    sigma: float,
    key_term: bool = True,
) -> Float[Tensor, " val"]:
    """The fit of `nadaraya_watson` with a Gaussian kernel, from scores q k and a bias for each key.

    -(q - k)^2 / (2 sigma^2) = q k / sigma^2 - k^2 / (2 sigma^2) - q^2 / (2 sigma^2), and the last
    term is the same for every key of a query, so softmax does not see it.

    Args:
        key_term: False leaves out -k^2 / (2 sigma^2): large keys win.
    """
    queries, keys, values = (x[None, None, :, None] / s for x, s in ((x_val, sigma), (x_train, sigma), (y_train, 1)))
    bias = -0.5 * (x_train / sigma).square()[None, None, None] if key_term else None
    return attend(queries, keys, values, bias=bias, scale=1.0, site="pooling.attention")[0, 0, :, 0]


NARROW = 0.02  # the width of a boxcar that reaches no point from most queries


@dataclass(frozen=True, eq=False)
class Fit:
    """Points, queries, and what pooling makes of them."""

    name: str  # the title of this fit among several
    x_train: Float[Tensor, " train"]
    y_train: Float[Tensor, " train"]
    x_val: Float[Tensor, " val"]
    truth: Float[Tensor, " val"]  # the curve behind the points, at the queries
    y_hat: Float[Tensor, " val"]  # NaN where no key is reached
    weights: Float[Tensor, "val train"]

    @property
    def error(self) -> float:
        """Mean squared distance from the truth over the queries that reach a key; NaN where none does."""
        return float((self.y_hat - self.truth).square().nanmean())

    def without_curves(self) -> "Fit":
        """The points alone: neither the truth nor the fit."""
        missing = torch.full_like(self.y_hat, torch.nan)
        return replace(self, truth=missing, y_hat=missing)

    def weighted_by(self, weights: Float[Tensor, "val train"]) -> "Fit":
        """The same queries and points with other weights."""
        return replace(self, weights=weights, y_hat=weights @ self.y_train)


def even_queries(count: int) -> Float[Tensor, " val"]:
    """`count` queries from 0 to `SPAN`, evenly spaced."""
    return torch.linspace(0, SPAN, count, dtype=torch.float64)


def book_curve_values() -> list[float]:
    """The book's curve at 0, 1, ..., 5."""
    return book_curve(torch.arange(6, dtype=torch.float64)).tolist()


def kernel_curves(width: float, reach: float) -> tuple[Float[Tensor, " offsets"], dict[str, Tensor]]:
    """601 distances from -reach to reach, and every kernel of this width at them, by name."""
    distances = torch.linspace(-reach, reach, 601, dtype=torch.float64)
    return distances, {name: with_width(kernel, width)(distances) for name, kernel in KERNELS.items()}


def sum_error(fit: Fit, unguarded: bool = False) -> float:
    """max |sum of a query's weights - 1| over the queries that reach a key; unguarded, of a narrow boxcar."""
    weights = unguarded_weights(fit.x_train, fit.x_val, NARROW) if unguarded else fit.weights[~fit.y_hat.isnan()]
    return float((weights.sum(dim=1) - 1).abs().max()) if len(weights) else 0.0


def range_excess(answers: Float[Tensor, " val"], y: Float[Tensor, " train"]) -> float:
    """By how much an answer lies above the largest value or below the smallest; 0 where none does."""
    if not len(answers):
        return 0.0
    return float(torch.cat([answers - y.max(), y.min() - answers]).clamp_min(0).max())


def search_width(kernel: str, n: int, noise: float, seed: int) -> tuple[WidthSearch, Float[Tensor, " widths"]]:
    """The search for a width between 0.02 and 10, and the squared distance from the truth at each width tried."""
    x, y = noisy_points(n, noise, seed)
    queries, tried = even_queries(251), torch.logspace(-1.7, 1, 55, dtype=torch.float64)
    search = learn_width(x, y, KERNELS[kernel], tried)
    fits = [nadaraya_watson(x, y, queries, with_width(KERNELS[kernel], float(width)))[0] for width in tried]
    return search, torch.tensor([mean_squared_distance(fit, queries) for fit in fits], dtype=torch.float64)


def true_best_width(search: WidthSearch, true_errors: Float[Tensor, " widths"]) -> float:
    """The width tried that comes closest to the truth."""
    return float(search.widths[true_errors.nan_to_num(torch.inf).argmin()])

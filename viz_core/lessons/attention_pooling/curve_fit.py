"""Points around the book's curve, and fits of it by every kernel."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.attention.kernel_pooling import KERNELS, nadaraya_watson, with_width
from viz_core.lessons.attention_pooling.broken import unguarded_weights
from viz_core.lessons.attention_pooling.kernel_width import WidthSearch, learn_width

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
    """max |sum of a query's weights - 1| over the queries that reach a key.

    Args:
        unguarded: whether a narrow boxcar weighs all queries instead, dividing by 0 where it reaches no key.
    """
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

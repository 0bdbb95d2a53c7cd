"""Kernel pooling of points around the book's curve: fits, the choice of a width, and Gaussian pooling as attention."""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from viz_core.attention.kernel_pooling import KERNELS, Kernel, gaussian, kernel_weights, nadaraya_watson, with_width
from viz_core.trace import attend

Train: TypeAlias = Float[Tensor, " train"]
Val: TypeAlias = Float[Tensor, " val"]


def unguarded_weights(x_train: Train, x_val: Val, width: float) -> Float[Tensor, "val train"]:
    """k / sum(k) of a boxcar with < in place of <=, as the book's code has it: 0/0, NaN, where no key is near."""
    nearness = ((x_val[:, None] - x_train).abs() < width).to(x_val.dtype)
    return nearness / nearness.sum(dim=1, keepdim=True)


def signed_weights(x_train: Train, x_val: Val, width: float) -> Float[Tensor, "val train"]:
    """Weights of the kernel (1 - u^2) e^(-u^2/2), which is negative beyond its width: they still sum to 1."""
    u = (x_val[:, None] - x_train) / width
    nearness = (1 - u.square()) * torch.exp(-0.5 * u.square())
    return nearness / nearness.sum(dim=1, keepdim=True)


def product_weights(x_train: Train, x_val: Val, sigma: float) -> Float[Tensor, "val train"]:
    """The weights of scores q k / sigma^2 alone: without -k^2 / (2 sigma^2) large keys win."""
    return (x_val[:, None] * x_train / sigma**2).softmax(dim=1)


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


Points = Float[Tensor, "n 2"]
CENTRES = ((-1.2, -0.6), (1.3, -0.4), (0.0, 1.2))
SPREAD = (0.75, 0.35)  # of a cloud, across and up: they are wider than high


def labelled_points(per_label: int = 14, seed: int = 0) -> tuple[Points, Int[Tensor, " n"]]:
    """Clouds of normal points around three centres, in float64, and the number of each point's cloud."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(len(CENTRES)).repeat_interleave(per_label)
    noise = torch.randn(len(labels), 2, generator=generator, dtype=torch.float64)
    return torch.tensor(CENTRES, dtype=torch.float64)[labels] + noise * torch.tensor(SPREAD), labels


def shares(
    points: Points, labels: Int[Tensor, " n"], queries: Float[Tensor, "queries 2"], widths: tuple[float, float]
) -> Float[Tensor, "queries labels"]:
    """sum_i a(q, x_i) onehot(y_i): the share of each label in a query's weight, with a width for each coordinate.

    a is the Gaussian of sum_c ((q_c - x_c) / h_c)^2. Nothing is trained (Dive into Deep Learning, section 11.2).
    """
    stretch = torch.tensor(widths, dtype=points.dtype)
    one_hot = torch.eye(int(labels.max()) + 1, dtype=points.dtype)[labels]
    return nadaraya_watson(points / stretch, one_hot, queries / stretch, gaussian())[0]


def share_map(
    points: Points, labels: Int[Tensor, " n"], widths: tuple[float, float], reach: float, side: int
) -> tuple[Float[Tensor, " side"], Float[Tensor, "side side labels"]]:
    """`side` places from -reach to reach, and the shares of each label on that grid, row by row from below."""
    axis = torch.linspace(-reach, reach, side, dtype=torch.float64)
    queries = torch.cartesian_prod(axis, axis).flip(1)
    return axis, shares(points, labels, queries, widths).reshape(side, side, -1)


def left_out_right(points: Points, labels: Int[Tensor, " n"], widths: tuple[float, float]) -> float:
    """The share of points whose label is the largest share when the point itself is left out."""
    stretched = points / torch.tensor(widths, dtype=points.dtype)
    weights = kernel_weights(torch.cdist(stretched, stretched).fill_diagonal_(math.inf), gaussian())
    one_hot = torch.eye(int(labels.max()) + 1, dtype=points.dtype)[labels]
    return float(((weights @ one_hot).argmax(dim=1) == labels).double().mean())


def transformed_error(points: Points, widths: tuple[float, float], degrees: float, shift: tuple[float, float]) -> float:
    """max |weights - weights after rotating and shifting keys and queries together|, each point being query and key.

    0 for any shift; for a turn, 0 where both widths are the same: then the kernel sees the distance alone.
    """
    turn = math.radians(degrees)
    rotation = torch.tensor([[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]], dtype=points.dtype)
    transformed = points @ rotation + torch.tensor(shift, dtype=points.dtype)
    stretch = torch.tensor(widths, dtype=points.dtype)
    before, after = (kernel_weights(torch.cdist(p, p), gaussian()) for p in (points / stretch, transformed / stretch))
    return float((before - after).abs().max())

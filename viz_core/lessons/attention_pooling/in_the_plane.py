"""Points with labels in the plane: pooling of labels, and Parzen windows, which give the same answer."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from viz_core.attention.kernel_pooling import gaussian, kernel_weights, nadaraya_watson

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


_SIDE, _REACH = 61, 3.0  # queries along each axis, and how far they go


def label_densities(
    points: Points, labels: Int[Tensor, " n"], queries: Float[Tensor, "queries 2"], width: float
) -> Float[Tensor, "queries labels"]:
    """p(q, y) = 1/n sum_(i: y_i = y) K(|q - x_i| / h) / (2 pi h^2): how dense a label lies there (Parzen 1962).

    K is the Gaussian. Over all labels and the whole plane it makes 1.
    """
    nearness = gaussian(width)(torch.cdist(queries, points)) / (2 * math.pi * width**2)
    one_hot = torch.eye(int(labels.max()) + 1, dtype=points.dtype)[labels]
    return nearness @ one_hot / len(points)


class Agreement(NamedTuple):
    """Two classifiers on a grid over the plane."""

    places: int  # of the grid
    unlike: int  # those that the two give another label
    off: float  # max |y_hat - (p_+ - p_-) / (p_+ + p_-)|
    unlike_by_count: int  # those that get another label where each density is divided by its own label's points


def agreement(points: Points, labels: Int[Tensor, " n"], width: float) -> Agreement:
    """Pooling of +1 for label 0 and -1 for all others, beside the denser of the two by Parzen windows.

    y_hat = sum_i a_i y_i = (p_+ - p_-) / (p_+ + p_-), for both are sums of the same kernel: what divides is positive
    and changes no sign (Dive into Deep Learning, section 11.2, exercise 1).
    """
    axis = torch.linspace(-_REACH, _REACH, _SIDE, dtype=points.dtype)
    queries, negative = torch.cartesian_prod(axis, axis), (labels > 0).long()
    pooled = nadaraya_watson(points, 1 - 2 * negative.to(points.dtype), queries, gaussian(width))[0]
    plus, minus = label_densities(points, negative, queries, width).unbind(dim=1)
    by_count = plus / (negative == 0).sum() - minus / (negative == 1).sum()
    return Agreement(
        len(queries),
        int((pooled.sign() != (plus - minus).sign()).sum()),
        float((pooled - (plus - minus) / (plus + minus)).abs().max()),
        int((by_count.sign() != pooled.sign()).sum()),
    )

"""Parzen windows: a density for each label, and the same answer as pooling labels by attention."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from viz_core.attention.kernel_pooling import nadaraya_watson
from viz_core.attention.kernels import gaussian

_SIDE, _REACH = 61, 3.0  # queries along each axis, and how far they go


def label_densities(
    points: Float[Tensor, "n 2"], labels: Int[Tensor, " n"], queries: Float[Tensor, "queries 2"], width: float
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


def agreement(points: Float[Tensor, "n 2"], labels: Int[Tensor, " n"], width: float) -> Agreement:
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

"""Learning a kernel's width: the one that errs least on points left out, or by gradient descent."""

import math
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.attention.kernel_pooling import Kernel, kernel_weights, with_width
from viz_core.trace.weights import row_softmax

Train: TypeAlias = Float[Tensor, " train"]
Widths: TypeAlias = Float[Tensor, " widths"]

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
    """The width of smallest mean squared leave-one-out error: over a grid, then between its best point's neighbours.

    The second part is a golden-section search in log width (Kiefer 1953).

    Args:
        kernel: at width 1.
        widths: the grid, rising.
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


_STEPS, _RATE = 200, 0.05  # of Adam, on the logarithm of the width


class Descent(NamedTuple):
    """Where the width came to, and the mean squared error on the points there."""

    width: float
    error: float


def descend_width(x_train: Train, y_train: Train, left_out: bool, start: float = 1.0) -> Descent:
    """The Gaussian's width after 200 steps down the gradient of mean_i (f(x_i) - y_i)^2.

    Args:
        left_out: whether (x_i, y_i) is not a key of f(x_i). Where it is one, a kernel of no width has no error: y_i
            answers for itself (Dive into Deep Learning, section 11.2, exercise 2).
    """
    distances = x_train[:, None] - x_train
    itself = torch.eye(len(x_train), dtype=torch.bool) & left_out
    with torch.enable_grad():
        log_width = torch.tensor(math.log(start), dtype=x_train.dtype, requires_grad=True)
        optimizer = torch.optim.Adam([log_width], lr=_RATE)
        for _ in range(_STEPS):
            optimizer.zero_grad()
            _error(distances, y_train, log_width, itself).backward()
            optimizer.step()
    with torch.no_grad():
        return Descent(float(log_width.exp()), float(_error(distances, y_train, log_width, itself)))


def _error(distances: Tensor, y_train: Tensor, log_width: Tensor, itself: Tensor) -> Tensor:
    scores = (-0.5 * (distances / log_width.exp()).square()).masked_fill(itself, -torch.inf)
    return (row_softmax(scores) @ y_train - y_train).square().mean()

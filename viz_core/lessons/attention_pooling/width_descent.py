"""A kernel's width by gradient descent: on errors of a fit that has seen each point, and of one that has not."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.trace.weights import row_softmax

_STEPS, _RATE = 200, 0.05  # of Adam, on the logarithm of the width


class Descent(NamedTuple):
    """Where the width came to, and the mean squared error on the points there."""

    width: float
    error: float


def descend_width(
    x_train: Float[Tensor, " train"], y_train: Float[Tensor, " train"], left_out: bool, start: float = 1.0
) -> Descent:
    """The Gaussian's width after 200 steps down the gradient of mean_i (f(x_i) - y_i)^2.

    Args:
        left_out: whether (x_i, y_i) is no key of f(x_i). Where it is one, a kernel of no width has no error: y_i
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

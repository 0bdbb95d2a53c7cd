"""Pooling with deliberate errors, one for each claim of the chapter."""

from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

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

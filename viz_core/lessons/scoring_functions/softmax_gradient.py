"""Gradient of a masked softmax: that of one key's weight with respect to every score."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from viz_core.attention.masking import masked_softmax

Lengths = Int[Tensor, "batch"] | Int[Tensor, "batch queries"]


def weight_gradient(
    scores: Float[Tensor, "batch queries keys"], valid_lens: Lengths | None, key: int
) -> Float[Tensor, "batch queries keys"]:
    """d a_i,key / d s_il for every query i and key l, by automatic differentiation."""
    leaf = scores.detach().clone().requires_grad_()
    with torch.enable_grad():
        (gradient,) = torch.autograd.grad(masked_softmax(leaf, valid_lens)[..., key].sum(), leaf)
    return gradient


def weight_gradient_by_formula(
    weights: Float[Tensor, "batch queries keys"], key: int
) -> Float[Tensor, "batch queries keys"]:
    """d a_key / d s_l = a_key (1 if l = key else 0) - a_key a_l: one row of the softmax's Jacobian.

    It needs the weights alone. A masked key has weight 0, so its gradient is 0; the
    entries of a row sum to 0, because adding one number to all scores changes no weight.
    """
    chosen = torch.zeros_like(weights)
    chosen[..., key] = 1.0
    return weights[..., key, None] * (chosen - weights)

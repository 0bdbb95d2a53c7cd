"""Typed scores with their masked softmax, and the gradient of one weight."""

from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from viz_core.attention.masking import length_mask, masked_softmax

Lengths = Int[Tensor, "batch"] | Int[Tensor, "batch queries"]

Scores: TypeAlias = Float[Tensor, "batch queries keys"]


def weight_gradient(scores: Scores, valid_lens: Lengths | None, key: int) -> Scores:
    """d a_i,key / d s_il for every query i and key l, by automatic differentiation."""
    leaf = scores.detach().clone().requires_grad_()
    with torch.enable_grad():
        (gradient,) = torch.autograd.grad(masked_softmax(leaf, valid_lens)[..., key].sum(), leaf)
    return gradient


def weight_gradient_by_formula(weights: Scores, key: int) -> Scores:
    """d a_key / d s_l = a_key (1 if l = key else 0) - a_key a_l: one row of the softmax's Jacobian.

    It needs the weights alone. A masked key has weight 0, so its gradient is 0; the
    entries of a row sum to 0, because adding one number to all scores changes no weight.
    """
    chosen = torch.zeros_like(weights)
    chosen[..., key] = 1.0
    return weights[..., key, None] * (chosen - weights)


class MaskedSoftmax(NamedTuple):
    """Scores, valid lengths and the weights that masked softmax makes of them."""

    scores: Scores
    valid_lens: Int[Tensor, "..."] | None
    weights: Scores
    gradient: Scores  # of the weight of key `key` (from 0) in every score
    key: int
    changed: float  # by how much the call changed its input

    @property
    def allowed(self) -> Bool[Tensor, "batch queries keys"]:
        """Whether a query may attend to a key."""
        if self.valid_lens is None:
            return torch.ones_like(self.scores, dtype=torch.bool)
        return length_mask(self.valid_lens, *self.scores.shape).expand(self.scores.shape)

    @property
    def empty_rows(self) -> list[int]:
        """Rows, counted over the batch, in which every key is masked."""
        empty: list[int] = (~self.allowed.any(dim=-1)).flatten().nonzero()[:, 0].tolist()
        return empty

    @property
    def num_masked(self) -> int:
        """Number of cells that are masked."""
        return int((~self.allowed).sum())

    @property
    def sum_error(self) -> float:
        """max |sum of a row's weights - 1|, or - 0 for an empty row."""
        expected = self.allowed.any(dim=-1).float()
        return float((self.weights.sum(dim=-1) - expected).abs().max())

    @property
    def masked_weight(self) -> float:
        """Largest weight on a masked key; 0 if none is masked."""
        masked = self.weights[~self.allowed]
        return float(masked.max()) if len(masked) else 0.0

    def gradient_error(self, gradient: Scores | None = None) -> float:
        """max |gradient - that by the formula a_key (delta - a_l)|, or by another one that is given."""
        formula = weight_gradient_by_formula(self.weights, self.key) if gradient is None else gradient
        return float((self.gradient - formula).abs().max())


def masked_scores(scores: Scores, valid_lens: Int[Tensor, "..."] | None, key: int) -> MaskedSoftmax:
    """Masked softmax of the scores, and the gradient of one key's weight."""
    given = scores.clone()
    weights = masked_softmax(given, valid_lens)
    gradient = weight_gradient(scores, valid_lens, key)
    return MaskedSoftmax(scores, valid_lens, weights, gradient, key, float((given - scores).abs().max()))

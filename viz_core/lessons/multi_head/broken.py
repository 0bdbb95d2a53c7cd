"""Multi-head attention with one deliberate error, for comparison with the correct layer."""

from typing import NamedTuple

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor

from viz_core.attention.multi_head import MultiHeadAttention
from viz_core.lessons.multi_head.steps import MultiHeadSteps, torch_multi_head

ERRORS = ("wrong-root", "dealt-out", "undivided")


class Variant(NamedTuple):
    """Attention weights and output of the layer, correct or with an error."""

    weights: Float[Tensor, "batch heads n n"]
    output: Float[Tensor, "batch n d"]


@torch.no_grad()
def variant(layer: MultiHeadAttention, steps: MultiHeadSteps, error: str = "") -> Variant:
    """Weights and output of `layer(X, X, X)` with one error; "" is the correct layer.

    "wrong-root" divides scores by sqrt(d) of the layer instead of sqrt(d / h); "dealt-out" gives each head every h-th
    column instead of a slice; "undivided" leaves out the division of the softmax.
    """
    h, values = layer.num_heads, steps.split_values
    if not error:
        return Variant(steps.weights, steps.output)
    if error == "wrong-root":
        weights = (steps.scores * h**-0.5).softmax(dim=-1)
    elif error == "dealt-out":
        Q, K, values = (rearrange(t, "b n (w h) -> b h n w", h=h) for t in (steps.queries, steps.keys, steps.values))
        weights = (Q @ K.mT * Q.shape[-1] ** -0.5).softmax(dim=-1)
    else:
        weights = steps.exponentials
    return Variant(weights, layer.W_o(rearrange(weights @ values, "b h n w -> b n (h w)")))


@torch.no_grad()
def residuals(layer: MultiHeadAttention, steps: MultiHeadSteps, error: str = "") -> tuple[float, float]:
    """max |ours - torch's| of outputs, and of the weights of all heads."""
    ours, X = variant(layer, steps, error), steps.input
    output, weights = torch_multi_head(layer)(X, X, X, average_attn_weights=False)
    return float((ours.output - output).abs().max()), float((ours.weights - weights).abs().max())

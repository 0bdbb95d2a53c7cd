"""Multi-head attention with deliberate errors, one for each claim of the chapter."""

from __future__ import annotations

import torch
from einops import rearrange

from viz_core.attention.multi_head import MultiHeadAttention
from viz_core.lessons.multi_head.steps import MultiHeadSteps, torch_multi_head


@torch.no_grad()
def wrong_root(layer: MultiHeadAttention, steps: MultiHeadSteps) -> tuple[float, float]:
    """max |ours - torch's| of outputs and weights if scores were divided by sqrt(d) of the layer, not of a head.

    The two are the same with one head, and further apart the more heads there are.
    """
    wide, narrow = layer.W_q.out_features, layer.head_dim
    weights = (steps.scores * (narrow / wide) ** 0.5).softmax(dim=-1)
    X = steps.input
    output, theirs = torch_multi_head(layer)(X, X, X, average_attn_weights=False)
    ours = layer.W_o(rearrange(weights @ steps.split_values, "b h n w -> b n (h w)"))
    return float((ours - output).abs().max()), float((weights - theirs).abs().max())


@torch.no_grad()
def dealt_out(layer: MultiHeadAttention, steps: MultiHeadSteps) -> float:
    """max |output - layer's| if columns were dealt out to the heads in turn, w h, in place of slices, h w."""
    h = layer.num_heads
    Q, K, V = (rearrange(t, "b n (w h) -> b h n w", h=h) for t in (steps.queries, steps.keys, steps.values))
    weights = (Q @ K.mT * Q.shape[-1] ** -0.5).softmax(dim=-1)
    output = layer.W_o(rearrange(weights @ V, "b h n w -> b n (h w)"))
    return float((output - layer(steps.input, steps.input, steps.input)).abs().max())


def undivided(steps: MultiHeadSteps) -> float:
    """max |row sum - 1| of the exponentials, the half of softmax that divides nothing."""
    return float((steps.exponentials.sum(dim=-1) - 1).abs().max())

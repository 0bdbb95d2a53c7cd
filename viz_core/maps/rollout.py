"""Attention rollout, by attention alone, and gradient-weighted relevance: shares of input tokens in an answer."""

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.trace import Trace
from viz_core.trace.arguments import check_tensors, is_number

HeadFusion: TypeAlias = Literal["mean", "max", "min"]


def attention_rollout(
    layers: Sequence[Float[Tensor, "heads n n"]], head_fusion: HeadFusion = "mean", discard_ratio: float = 0.0
) -> Float[Tensor, "n n"]:
    """Share of each input token in each token after the last layer; rows sum to 1.

    R = A_L ... A_2 A_1 with A_l = rows of (W_l + I) divided by their sums (Abnar and Zuidema 2020, section 3):
    the identity stands for the residual connection. W_l fuses the heads of layer l.

    Args:
        layers: attention weights, first layer first.
        head_fusion: mean over heads as in the paper, or their largest or smallest weight.
        discard_ratio: 0 to below 1; this part of each fused map, its smallest weights, counts as 0
            (Gildenblat 2020, "Exploring Explainability for Vision Transformers").

    Raises:
        ValueError: if there is no layer, maps are not square or not of one size, or an argument is out of range.
    """
    return rollout_by_layer(layers, head_fusion, discard_ratio)[-1]


def rollout_by_layer(
    layers: Sequence[Float[Tensor, "heads n n"]], head_fusion: HeadFusion = "mean", discard_ratio: float = 0.0
) -> Float[Tensor, "layers n n"]:
    """The rollout after each layer, first to last: entry l is A_l ... A_1. Arguments as for `attention_rollout`.

    Raises:
        ValueError: as `attention_rollout`.
    """
    if not layers:
        raise ValueError("layers: expected at least one")
    check_tensors(**{f"layers[{number}]": weights for number, weights in enumerate(layers)})
    if any(w.dim() != 3 or not w.shape[0] or w.shape[1:] != (layers[0].shape[1],) * 2 for w in layers):
        shapes = [tuple(w.shape) for w in layers]
        raise ValueError(f"layers: expected maps (heads, n, n) of one n, got shapes {shapes}")
    reached = torch.eye(layers[0].shape[1], dtype=layers[0].dtype, device=layers[0].device)
    steps = []
    for weights in layers:
        reached = with_residual(discard_smallest(fuse_heads(weights, head_fusion), discard_ratio)) @ reached
        steps.append(reached)
    return torch.stack(steps)


def fuse_heads(weights: Float[Tensor, "heads n n"], how: HeadFusion) -> Float[Tensor, "n n"]:
    """All heads as one map: 1/h sum_h W_h, max_h W_h or min_h W_h, entry by entry. ValueError for another `how`."""
    if how not in get_args(HeadFusion):
        raise ValueError(f"head_fusion: expected 'mean', 'max' or 'min', got {how!r}")
    if how == "mean":
        return weights.mean(dim=0)
    return weights.amax(dim=0) if how == "max" else weights.amin(dim=0)


def discard_smallest(weights: Float[Tensor, "n n"], ratio: float) -> Float[Tensor, "n n"]:
    """The map with its floor(ratio n^2) smallest weights set to 0. ValueError unless 0 <= ratio < 1."""
    if not is_number(ratio) or not 0 <= ratio < 1:
        raise ValueError(f"discard_ratio: expected at least 0 and below 1, got {ratio}")
    flat = weights.flatten()
    smallest = flat.argsort(stable=True)[: int(ratio * flat.numel())]
    return flat.index_fill(0, smallest, 0.0).reshape(weights.shape)


def with_residual(weights: Float[Tensor, "n n"]) -> Float[Tensor, "n n"]:
    """W + I with rows divided by their sums, where I is the residual connection (Abnar and Zuidema 2020, section 3)."""
    mixed = weights + torch.eye(weights.shape[-1], dtype=weights.dtype, device=weights.device)
    return mixed / mixed.sum(dim=-1, keepdim=True)


def gradient_relevance(
    weights: Sequence[Float[Tensor, "heads n n"]], gradients: Sequence[Float[Tensor, "heads n n"]]
) -> Float[Tensor, "n n"]:
    """Relevance of each token (columns) to each token of the last layer (rows), for the answer differentiated.

    R <- R + A R for each layer, first to last, from R = I, with A = mean over heads of (dy/dW * W)^+
    (Chefer, Gur and Wolf 2021, "Generic Attention-model Explainability", equations 5 and 6). Only weights that
    raise the answer y count.

    Args:
        weights: attention weights of each layer, first layer first.
        gradients: derivative of the answer by each of them.

    Raises:
        ValueError: if there is no layer, or weights and gradients differ in number or shape.
    """
    check_tensors(**{f"weights[{number}]": weight for number, weight in enumerate(weights)})
    check_tensors(**{f"gradients[{number}]": gradient for number, gradient in enumerate(gradients)})
    shapes = [tuple(w.shape) for w in weights]
    if not shapes or shapes != [tuple(g.shape) for g in gradients]:
        raise ValueError(
            f"expected weights and gradients of one or more layers, alike in shape, got {shapes} and "
            f"{[tuple(g.shape) for g in gradients]}"
        )
    relevance = torch.eye(shapes[0][-1], dtype=weights[0].dtype, device=weights[0].device)
    for weight, gradient in zip(weights, gradients, strict=True):
        step = (gradient * weight).clamp_min(0.0).mean(dim=0)
        relevance = relevance + step @ relevance
    return relevance


def relevance_maps(trace: Trace, answer: Float[Tensor, ""]) -> Float[Tensor, "n n"]:
    """`gradient_relevance` of one picture, from a trace recorded with its graph.

    Args:
        trace: of `record(differentiable=True)`, with self-attention calls alone, a batch of one.
        answer: the number to explain, such as the logit of a class, computed in that block.

    Raises:
        ValueError: if the trace kept no graph, or holds a batch of several.
    """
    weights = [call.graph_weights for call in trace]
    if any(w.shape[0] != 1 for w in weights):
        raise ValueError(f"trace: expected a batch of one, got {max(w.shape[0] for w in weights)}")
    gradients = torch.autograd.grad(answer, weights)
    return gradient_relevance([w.detach()[0].cpu() for w in weights], [g[0].cpu() for g in gradients])

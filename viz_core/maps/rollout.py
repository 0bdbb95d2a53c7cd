"""Attention rollout: share of each input token in each token of a later layer, by attention alone."""

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

import torch
from jaxtyping import Float
from torch import Tensor

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

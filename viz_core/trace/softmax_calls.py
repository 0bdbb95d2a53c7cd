"""Attention that a model makes by matrix products of its own: heard at its softmax, whose result is the weights."""

from __future__ import annotations

import re
from collections.abc import Callable, Set
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

SOFTMAXES: frozenset[Callable[..., Any]] = frozenset({F.softmax, torch.softmax, Tensor.softmax})

_HEADS = "num_heads num_attention_heads num_attn_heads n_heads n_head nhead heads h".split()

_PARTS = re.compile(
    r"Longformer|LED(Global|Encoder)|BlockSparse|LongT5(Local|Transient)|GlobalLocal"
    r"|Nystrom|Deformable|LinearSelf|EfficientAdditive|MaskUnit|Assign"
)
"""Classes whose softmax weighs parts of the keys, or no keys: windows, blocks, landmarks, sampled points, groups."""


def spans_all_keys(layer: nn.Module) -> bool:
    """Whether the softmax of a layer, of whatever lies within it, is over all keys at once, as far as names tell."""
    return not any(_PARTS.search(type(module).__name__) for module in layer.modules())


def possible_head_counts(layer: nn.Module) -> frozenset[int]:
    """How many heads a layer or what lies within it says that it has; none where it does not say."""
    said = (getattr(module, name, None) for module in layer.modules() for name in _HEADS)
    return frozenset(number for number in said if type(number) is int and number > 0)


def softmax_weights(
    result: Tensor, heads: Set[int], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Float[Tensor, "batch heads queries keys"] | None:
    """The weights (batch, heads, queries, keys) that a softmax in an attention layer gave; None where it gave others.

    Args:
        heads: how many there may be. With three axes they stand in the first, beside the batch.
        args, kwargs: what the softmax was called with.

    A softmax over another axis than the last is none over keys, nor is one whose second of four axes are no heads:
    windows of the text, sampled points.
    """
    dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
    if dim is None or dim % result.dim() != result.dim() - 1:
        return None
    if result.dim() == 3:
        number = next((n for n in sorted(heads, reverse=True) if result.shape[0] % n == 0), 1)
        return result.unflatten(0, (-1, number))
    return result if result.dim() == 4 and (not heads or result.shape[1] in heads) else None

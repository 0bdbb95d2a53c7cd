"""Attention that a model computes by matrix products of its own, recorded at its softmax."""

import re
from collections.abc import Callable, Set
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

SOFTMAXES: frozenset[Callable[..., Any]] = frozenset({F.softmax, torch.softmax, Tensor.softmax})

PRODUCTS: frozenset[Callable[..., Any]] = frozenset(
    {torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.bmm, Tensor.bmm}
)

_HEADS = "num_heads num_attention_heads num_attn_heads n_heads n_head nhead heads h".split()

_PARTS = re.compile(
    r"Longformer|LED(Global|Encoder)|BlockSparse|LongT5(Local|Transient)|GlobalLocal"
    r"|Nystrom|Deformable|LinearSelf|EfficientAdditive|MaskUnit|Assign"
    r"|FactorAttn|CrossCovariance|Outlook|SplitAttn|SelectiveKernel|ChannelAttention|HaloAttn|XCA$|SpatialTransformerBlock"
)
"""Classes whose softmax weighs parts of the keys, or no keys: windows, blocks, sampled points, groups, channels."""


def spans_all_keys(layer: nn.Module) -> bool:
    """Whether the softmax in a layer is over all keys at once, judged by the class names of its modules."""
    return not any(_PARTS.search(type(module).__name__) for module in layer.modules())


def possible_head_counts(layer: nn.Module) -> frozenset[int]:
    """Return the numbers of heads that a layer or its modules have as attributes; empty without any."""
    numbers = (getattr(module, name, None) for module in layer.modules() for name in _HEADS)
    return frozenset(number for number in numbers if type(number) is int and number > 0)


def softmax_weights(
    result: Tensor, heads: Set[int], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Float[Tensor, "batch heads queries keys"] | None:
    """Return the result of a softmax as weights (batch, heads, queries, keys); None if it is not attention over keys.

    It is not if the softmax is over another axis than the last, or the second of four axes is not heads: windows of
    the text, sampled points.

    Args:
        heads: possible numbers of heads. With three axes they share the first with the batch.
        args, kwargs: the arguments of the softmax.
    """
    dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
    if dim is None or dim % result.dim() != result.dim() - 1:
        return None
    if result.dim() == 3:
        number = next((n for n in sorted(heads, reverse=True) if result.shape[0] % n == 0), 1)
        return result.unflatten(0, (-1, number))
    if result.dim() > 4 and result.shape[-3] in heads:  # windows of each picture: torchvision's MaxViT
        result = result.flatten(0, -4)
    return result if result.dim() == 4 and (not heads or result.shape[1] in heads) else None


def values_of(factor: Tensor, shape: tuple[int, ...]) -> Float[Tensor, "batch heads keys v"] | None:
    """Return what weights of this shape are multiplied by, as values; None if it does not fit."""
    batch, heads, _, num_keys = shape
    if factor.dim() < 3 or factor.shape[-2] != num_keys or factor.shape[:-2].numel() != batch * heads:
        return None
    return factor.reshape(batch, heads, num_keys, factor.shape[-1])

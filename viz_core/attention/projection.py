"""Checks of the inputs of layers with weights."""

import torch
from torch import Tensor, nn

from viz_core.trace.arguments import (
    can_be_read,
    check_axes,
    check_device,
    check_integers,
    check_like,
    check_tensors,
    is_autocast_on,
)


def check_width(name: str, X: Tensor, projection: nn.Linear) -> None:
    """Raise ValueError unless X is (batch, n, the projection's width), of its type and on its device."""
    check_like(name, X, projection.weight)
    if X.dim() != 3 or X.shape[-1] != projection.in_features:
        raise ValueError(f"{name}: expected shape (batch, n, {projection.in_features}), got {tuple(X.shape)}")


def check_features(name: str, X: Tensor, layer: nn.Linear) -> None:
    """Raise ValueError unless X is (..., the layer's width), of its type and on its device."""
    check_like(name, X, layer.weight)
    if not X.dim() or X.shape[-1] != layer.in_features:
        raise ValueError(f"{name}: expected vectors of width {layer.in_features}, got shape {tuple(X.shape)}")


def check_norm_inputs(norm: nn.Module, norm_shape: tuple[int, ...], **named: Tensor) -> None:
    """Raise ValueError unless all are of one shape (..., *norm_shape), no wider than the norm's weights, on its device.

    Their types may differ under autocast. A norm without weights takes any type.
    """
    weight = getattr(norm, "weight", None)
    weight = weight if isinstance(weight, Tensor) and not weight.is_meta else None
    for name, X in named.items():
        check_tensors(**{name: X})
        if X.shape[-len(norm_shape) :] != norm_shape:
            sides = ", ".join(map(str, norm_shape))
            raise ValueError(f"{name}: expected (..., {sides}), got shape {tuple(X.shape)}")
        if weight is None:
            continue
        wide = torch.promote_types(X.dtype, weight.dtype) != weight.dtype
        if wide and not is_autocast_on(X.device.type):
            raise ValueError(f"{name}: expected {weight.dtype} as the norm's weights are, got {X.dtype}")
        check_device(**{name: X}, weights=weight)
    shapes = [tuple(X.shape) for X in named.values()]
    if any(shape != shapes[0] for shape in shapes):  # lengths may be symbols, which no set takes
        raise ValueError(f"expected {' and '.join(named)} of one shape, got {' and '.join(map(str, shapes))}")


def check_tokens(X: Tensor, embedding: nn.Embedding) -> None:
    """Raise ValueError unless X is (batch, n) of token ids of the vocabulary, on the embedding's device."""
    check_integers(X=X)
    if X.dtype not in (torch.int32, torch.int64):
        raise ValueError(f"X: expected token ids of int32 or int64, got {X.dtype}")
    check_axes("batch n", X=X)
    weight = embedding.weight
    if X.device != weight.device and not weight.is_meta:
        raise ValueError(f"X: expected token ids on {weight.device} as the layer's weights are, got {X.device}")
    if can_be_read(X):
        least, most = (int(end) for end in X.aminmax())
        if least < 0 or most >= embedding.num_embeddings:
            raise ValueError(f"X: expected token ids from 0 to {embedding.num_embeddings - 1}, got {least} to {most}")

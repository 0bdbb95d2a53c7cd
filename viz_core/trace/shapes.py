"""Checks of the arguments of an attention call: shapes, types, ranges."""

import torch
from torch import Tensor

from viz_core.trace.arguments import (
    check_axes,
    check_device,
    check_number,
    check_positive_number,
    check_tensors,
    described,
)


def check_scores(
    queries: Tensor,
    keys: Tensor,
    mask: Tensor | None,
    bias: Tensor | None,
    softcap: float | None,
    scale: float | None = None,
) -> None:
    """Raise ValueError unless queries, keys, mask, bias, softcap and scale fit together."""
    check_tensors(queries=queries, keys=keys)
    if queries.dim() != 4 or keys.dim() != 4:
        shapes = [tuple(queries.shape), tuple(keys.shape)]
        raise ValueError(f"expected queries and keys of shape (batch, heads, n, width), got {shapes}")
    if queries.shape[-1] != keys.shape[-1]:
        raise ValueError(f"expected queries and keys of one width, got {queries.shape[-1]} and {keys.shape[-1]}")
    if queries.shape[0] != keys.shape[0]:
        raise ValueError(f"expected queries and keys of one batch size, got {queries.shape[0]} and {keys.shape[0]}")
    if queries.shape[1] % keys.shape[1] if keys.shape[1] else queries.shape[1]:
        raise ValueError(f"expected key heads to divide query heads, got {keys.shape[1]} and {queries.shape[1]}")
    scores = (*queries.shape[:3], keys.shape[2])
    if mask is not None and (not isinstance(mask, Tensor) or mask.dtype != torch.bool):
        came = described(mask)
        raise ValueError(f"mask: expected booleans, True where a query may look, got {came}; numbers are a bias")
    if bias is not None and (not isinstance(bias, Tensor) or not bias.is_floating_point()):
        came = described(bias)
        raise ValueError(f"bias: expected floating-point numbers to add to scores, got {came}; booleans are a mask")
    for name, tensor in (("mask", mask), ("bias", bias)):
        if tensor is not None and not _broadcasts(tuple(tensor.shape), scores):
            raise ValueError(f"{name}: expected a shape that broadcasts to {scores}, got {tuple(tensor.shape)}")
    check_device(queries=queries, mask=mask, bias=bias)
    if softcap is not None:
        check_positive_number(softcap=softcap)
    if scale is not None:
        check_number(scale=scale)


def check_values(keys: Tensor, values: Tensor) -> None:
    """Raise ValueError unless there is one value for each key."""
    check_tensors(keys=keys, values=values)
    check_axes("batch heads n width", values=values)
    if keys.shape[:3] != values.shape[:3]:
        raise ValueError(f"expected one value for each key, got shapes {tuple(keys.shape)} and {tuple(values.shape)}")


def with_four_axes(tensor: Tensor) -> Tensor:
    """Return a tensor that broadcasts to (batch, heads, queries, keys) with its missing first axes, of size 1."""
    return tensor[(None,) * (4 - tensor.dim())]


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    pairs = zip(reversed(shape), reversed(to), strict=False)
    return len(shape) <= len(to) and all(size in (1, target) for size, target in pairs)

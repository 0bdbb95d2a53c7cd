"""What fits together in an attention call: shapes, kinds of numbers, ranges."""

from __future__ import annotations

import torch
from torch import Tensor


def check_scores(
    queries: Tensor, keys: Tensor, mask: Tensor | None, bias: Tensor | None, softcap: float | None
) -> None:
    """Refuse queries, keys and what is done to their scores where these do not fit together.

    Raises:
        ValueError: naming what was expected and what came.
    """
    check_tensors(queries=queries, keys=keys)
    if queries.dim() != 4 or keys.dim() != 4:
        shapes = [tuple(queries.shape), tuple(keys.shape)]
        raise ValueError(f"expected queries and keys of shape (batch, heads, n, width), got {shapes}")
    if queries.shape[-1] != keys.shape[-1]:
        raise ValueError(f"expected queries and keys of one width, got {queries.shape[-1]} and {keys.shape[-1]}")
    if queries.shape[0] != keys.shape[0]:
        raise ValueError(f"expected queries and keys of one batch size, got {queries.shape[0]} and {keys.shape[0]}")
    if queries.shape[1] % max(1, keys.shape[1]):
        raise ValueError(f"expected key heads to divide query heads, got {keys.shape[1]} and {queries.shape[1]}")
    scores = (*queries.shape[:3], keys.shape[2])
    for name, tensor in (("mask", mask), ("bias", bias)):
        if tensor is not None and not _broadcasts(tuple(tensor.shape), scores):
            raise ValueError(f"{name}: expected a shape that broadcasts to {scores}, got {tuple(tensor.shape)}")
    if mask is not None and mask.dtype != torch.bool:
        raise ValueError(f"mask: expected booleans, True where a query may look, got {mask.dtype}; numbers are a bias")
    if softcap is not None and softcap <= 0:
        raise ValueError(f"softcap: expected a positive number, got {softcap}")


def check_tensors(**named: object) -> None:
    """Refuse what is no floating-point tensor, and tensors of several types or on several devices.

    Raises:
        ValueError: naming what was expected and what came.
    """
    for name, thing in named.items():
        if not isinstance(thing, Tensor) or not thing.is_floating_point():
            came = thing.dtype if isinstance(thing, Tensor) else type(thing).__name__
            raise ValueError(f"{name}: expected a floating-point tensor, got {came}")
    tensors = {name: thing for name, thing in named.items() if isinstance(thing, Tensor)}
    for what in ("dtype", "device"):
        if len({getattr(tensor, what) for tensor in tensors.values()}) > 1:
            came = ", ".join(f"{name} {getattr(tensor, what)}" for name, tensor in tensors.items())
            raise ValueError(f"expected {' and '.join(tensors)} of one {what}, got {came}")


def check_values(keys: Tensor, values: Tensor) -> None:
    """Refuse values that are not one for each key.

    Raises:
        ValueError: naming both shapes.
    """
    check_tensors(keys=keys, values=values)
    if values.dim() != 4 or keys.shape[:3] != values.shape[:3]:
        raise ValueError(f"expected one value for each key, got shapes {tuple(keys.shape)} and {tuple(values.shape)}")


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    pairs = zip(reversed(shape), reversed(to), strict=False)
    return len(shape) <= len(to) and all(size in (1, wanted) for size, wanted in pairs)

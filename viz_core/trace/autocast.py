"""Autocast: what torch's attention makes of its arguments there, and reading that is as exact there as anywhere."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor


def is_autocast_on(device: str) -> bool:
    """Whether autocast is on for a type of device; it never is where torch has none, as on "meta"."""
    return torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)


def cast_inputs(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors as `F.scaled_dot_product_attention` takes them: cast where autocast is on, else as they are.

    Rotary positions leave queries and keys in float32 beside values in bfloat16, which nothing but autocast allows.
    What is recorded are the numbers that were attended by. What is no tensor is refused by whoever checks them.
    """
    device = next((tensor.device.type for tensor in tensors if isinstance(tensor, Tensor)), "cpu")
    if not is_autocast_on(device):
        return tensors
    dtype = torch.get_autocast_dtype(device)
    casts = (torch.float32, torch.float16, torch.bfloat16)  # float64 is left alone
    return tuple(tensor.to(dtype) if getattr(tensor, "dtype", None) in casts else tensor for tensor in tensors)


def without_autocast(tensors: Iterable[Tensor]) -> torch.autocast:
    """A block in which nothing is cast: maps are worked out in float32, wherever they are asked for.

    Raises:
        ValueError: if they are to be worked out from shapes alone.
    """
    device = next((tensor.device.type for tensor in tensors), "cpu")
    if device == "meta":
        raise ValueError("expected a recording with numbers, got one on the device meta, which has shapes alone")
    return torch.autocast(device if torch.amp.is_autocast_available(device) else "cpu", enabled=False)

"""Autocast: arguments cast as torch's attention casts them, and maps computed without it."""

from collections.abc import Iterable

import torch
from torch import Tensor


def is_autocast_on(device: str) -> bool:
    """Whether autocast is on for a type of device; never where torch has none, as on "meta"."""
    return torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)


def cast_inputs(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Return the tensors, cast as by `F.scaled_dot_product_attention` where autocast is on.

    Rotary positions leave queries and keys in float32 beside values in bfloat16, which only autocast allows. What is
    no tensor is left to the checks of the caller.
    """
    device = next((tensor.device.type for tensor in tensors if isinstance(tensor, Tensor)), "cpu")
    if not is_autocast_on(device):
        return tensors
    dtype = torch.get_autocast_dtype(device)
    casts = (torch.float32, torch.float16, torch.bfloat16)  # float64 is never cast
    return tuple(tensor.to(dtype) if getattr(tensor, "dtype", None) in casts else tensor for tensor in tensors)


def without_autocast(tensors: Iterable[Tensor]) -> torch.autocast:
    """Return a block without autocast, in which maps are computed in float32; ValueError on the device meta."""
    device = next((tensor.device.type for tensor in tensors), "cpu")
    if device == "meta":
        raise ValueError("expected a recording with numbers, got one on the device meta, which has shapes alone")
    return torch.autocast(device if torch.amp.is_autocast_available(device) else "cpu", enabled=False)

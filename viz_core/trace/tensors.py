"""The tensors that a recording refers to: detached, never wrapped, copied or cast as torch's attention does."""

from collections.abc import Iterable

import torch
from torch import Tensor

from viz_core.torch_internals.refusals import is_transformed
from viz_core.torch_internals.register import declare

declare("torch:Tensor._version", "noticing changes in place after a recording")
declare("torch.nn.attention.bias:CausalBias._materialize", "recording torch's CausalBias")


def version(tensor: Tensor) -> int | None:
    """Return how often a tensor was changed in place, through views too; None where torch does not count.

    Torch does not count in its inference mode, and misses `.data` and numpy's view.
    """
    return None if tensor.is_inference() else getattr(tensor, "_version", None)


def materialized(mask: Tensor, device: torch.device) -> Tensor:
    """Return a mask whose numbers exist: torch's CausalBias stands for one that is made when it is used."""
    make = getattr(mask, "_materialize", None)
    return mask if make is None else make(device)


def snapshot(keys: Tensor, queries: Tensor) -> Tensor:
    """Return keys or values (batch, heads, keys, d) detached: a copy where they may be a cache that is written over.

    Torch counts how often a tensor was changed in place. In its inference mode it does not: there, tensors longer than
    the queries, and parts of longer tensors, are taken for caches.
    """
    own = keys.detach()
    if is_transformed(own):  # to be refused, with its site, by `Trace.add`
        return own
    if own.is_inference():
        is_part = own.untyped_storage().nbytes() > own.nbytes
        return own.clone() if is_part or own.shape[2] > queries.shape[2] else own
    return own.clone() if version(own) else own


def with_gradient(weights: Tensor) -> Tensor:
    """Return weights for which gradients can be computed: a leaf if nothing in the graph leads to them."""
    return weights.requires_grad_() if torch.is_grad_enabled() and not weights.requires_grad else weights


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

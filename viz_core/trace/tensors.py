"""The tensors that a recording refers to: detached, never wrapped, copied or cast as torch's attention does."""

from collections.abc import Iterable

import torch
from torch import Tensor

from viz_core.torch_internals.tensors import is_transformed, unwrap_gradients, version


def detached(tensor: Tensor) -> Tensor:
    """Return a tensor's numbers without their graph, also within `torch.func.grad`.

    A tensor of `torch.func.vmap` stands for many and stays as it is: `refuse_transformed`.
    """
    return unwrap_gradients(tensor.detach())


def snapshot(keys: Tensor, queries: Tensor) -> Tensor:
    """Return keys or values (batch, heads, keys, d) detached: a copy where they may be a cache that is written over.

    Torch counts how often a tensor was changed in place. In its inference mode it does not: there, tensors longer than
    the queries, and parts of longer tensors, are taken for caches.
    """
    own = detached(keys)
    if torch.compiler.is_compiling() or is_transformed(own):
        return own
    if own.is_inference():
        is_part = own.untyped_storage().nbytes() > own.nbytes
        return own.clone() if is_part or own.shape[2] > queries.shape[2] else own
    return own.clone() if version(own) else own


def with_gradient(weights: Tensor) -> Tensor:
    """Return weights for which gradients can be computed: a leaf if nothing in the graph leads to them."""
    return weights.requires_grad_() if torch.is_grad_enabled() and not weights.requires_grad else weights


def refuse_transformed(tensors: Iterable[Tensor]) -> None:
    """Raise ValueError if a tensor is wrapped by a transform of `torch.func`, which it does not outlast."""
    if any(is_transformed(tensor) for tensor in tensors):
        raise ValueError(
            "attention cannot be recorded within torch.func.vmap, nor its weights in the graph of another transform: "
            "what is recorded must outlast it. Give all examples as one batch, or each by itself"
        )


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

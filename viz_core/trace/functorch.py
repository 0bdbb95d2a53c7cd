"""The recorder and torch.func: tensors within a transform are wrapped, and gone when it ends."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor


def kept(tensor: Tensor) -> Tensor:
    """What a recording keeps of a tensor: its numbers, without their graph, also within `torch.func.grad`.

    A tensor of `torch.func.vmap` stands for many and stays as it is: `refuse_transformed`.
    """
    functorch, tensor = torch._C._functorch, tensor.detach()
    while functorch.is_functorch_wrapped_tensor(tensor) and not functorch.is_batchedtensor(tensor):
        tensor = functorch.get_unwrapped(tensor)
    return tensor


def lasting(keys: Tensor, queries: Tensor) -> Tensor:
    """What a recording keeps of keys or values (batch, heads, keys, d): a copy, where a cache may be written over.

    Torch counts how often a tensor has been written into. In its inference mode it does not: there every tensor is
    taken for a cache that is longer than the queries, or part of a longer one.
    """
    own = kept(keys)
    if torch.compiler.is_compiling() or torch._C._functorch.is_functorch_wrapped_tensor(own):
        return own
    if own.is_inference():
        part = own.untyped_storage().nbytes() > own.nbytes
        return own.clone() if part or own.shape[2] > queries.shape[2] else own
    return own.clone() if own._version else own


def refuse_transformed(tensors: Iterable[Tensor]) -> None:
    """Refuse tensors that are wrapped by a transform.

    Raises:
        ValueError: if there is one.
    """
    if any(torch._C._functorch.is_functorch_wrapped_tensor(tensor) for tensor in tensors):
        raise ValueError(
            "attention cannot be recorded within torch.func.vmap, nor its weights in the graph of another transform: "
            "what is recorded must outlast it. Give all examples as one batch, or each by itself"
        )

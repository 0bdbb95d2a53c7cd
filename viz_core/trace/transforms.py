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

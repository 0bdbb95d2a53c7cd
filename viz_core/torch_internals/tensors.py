"""Facts about a tensor that torch keeps private: its transform, its version, the backward pass around it."""

import torch
from torch import Tensor

from viz_core.torch_internals.register import declare, private

_FUNCTORCH = "torch._C._functorch"
_TRANSFORMS = "recording within torch.func"

_is_wrapped = private(f"{_FUNCTORCH}:is_functorch_wrapped_tensor", _TRANSFORMS, default=lambda _: False)
_is_batched = private(f"{_FUNCTORCH}:is_batchedtensor", _TRANSFORMS, default=lambda _: False)
_unwrapped = private(f"{_FUNCTORCH}:get_unwrapped", _TRANSFORMS, default=lambda tensor: tensor)
_graph_task_id = private(
    "torch._C:_current_graph_task_id", "recording with activation checkpointing", default=lambda: -1
)
declare("torch:Tensor._version", "noticing changes in place after a recording")
declare("torch.nn.attention.bias:CausalBias._materialize", "recording torch's CausalBias")


def is_transformed(tensor: Tensor) -> bool:
    """Whether a tensor belongs to a transform of `torch.func`, and is gone when it ends."""
    return bool(_is_wrapped(tensor))


def unwrap_gradients(tensor: Tensor) -> Tensor:
    """Return the tensor within `torch.func.grad`'s wrappers; one of `torch.func.vmap` stands for many and stays."""
    while _is_wrapped(tensor) and not _is_batched(tensor):
        tensor = _unwrapped(tensor)
    return tensor


def current_backward() -> int:
    """Return the number of the backward pass whose hooks or recomputation run this code; -1 for none."""
    return int(_graph_task_id())


def version(tensor: Tensor) -> int | None:
    """Return how often a tensor was changed in place, through views too; None where torch does not count.

    Torch counts neither in its inference mode nor while it compiles, and misses `.data` and numpy's view.
    """
    if torch.compiler.is_compiling() or tensor.is_inference():
        return None
    return getattr(tensor, "_version", None)


def materialized(mask: Tensor, device: torch.device) -> Tensor:
    """Return a mask whose numbers exist: torch's CausalBias stands for one that is made when it is used."""
    make = getattr(mask, "_materialize", None)
    return mask if make is None else make(device)

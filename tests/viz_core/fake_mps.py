"""Tensors that claim to be on Apple's device, mps: float64 there, and tensors of two devices, are errors as on it."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

MPS, CPU = torch.device("mps:0"), torch.device("cpu")
_MIXES = {"__getitem__", "index_put", "__setitem__", "copy_", "__set__", "_has_compatible_shallow_copy_type"}


class FakeMps(TorchFunctionMode):
    """In this block, what `put` names and what is made of it or moved there is on mps, by its storage."""

    def __init__(self) -> None:
        super().__init__()
        self._storages: dict[int, Any] = {}  # held, so that no other storage gets the same address

    def put(self, model: nn.Module) -> None:
        for tensor in (*model.parameters(), *model.buffers()):
            self._mark(tensor)

    def __torch_function__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func == Tensor.device.__get__:  # type: ignore[attr-defined]
            return self._device(args[0])
        if func in (Tensor.cpu, Tensor.to) or (func is torch.as_tensor and isinstance(args[0], Tensor)):
            return self._on_device(args[0], CPU if func is Tensor.cpu else None, *args[1:], *kwargs.values())
        tensors = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
        there = [each for each in tensors if self._device(each) == MPS]
        if there and func.__name__ == "numpy":
            raise TypeError("can't convert mps device type tensor to numpy")
        if there and func.__name__ not in _MIXES:
            others = [each for each in tensors if each.dim() and each.numel() and self._device(each) == CPU]
            if others:
                raise RuntimeError(f"{func.__name__}: expected all tensors on one device, got mps and cpu")
        made_there = bool(there)
        if kwargs.get("device") is not None:
            made_there = torch.device(kwargs["device"]).type == "mps"
            kwargs["device"] = CPU
        output = func(*args, **kwargs)
        if made_there and func.__name__ != "__set__":
            for each in tree_leaves(output):
                if isinstance(each, Tensor):
                    self._mark(each)
        return output

    def _on_device(self, tensor: Tensor, device: torch.device | None, *given: Any) -> Tensor:
        dtype = tensor.dtype
        for each in given:
            if isinstance(each, Tensor):
                device, dtype = self._device(each), each.dtype
            elif isinstance(each, str | torch.device):
                device = torch.device(each)
            elif isinstance(each, torch.dtype):
                dtype = each
        before = self._device(tensor)
        after = before if device is None else CPU if device.type == "cpu" else MPS
        if dtype == torch.float64 and before == MPS:
            raise TypeError("Cannot convert a MPS Tensor to float64")
        output = tensor.to(dtype)
        output = output.clone() if before != after else output
        if after == MPS:
            self._mark(output)
        return output

    def _device(self, tensor: Tensor) -> torch.device:
        return MPS if tensor.untyped_storage().data_ptr() in self._storages else CPU

    def _mark(self, tensor: Tensor) -> None:
        if tensor.dtype == torch.float64:
            raise TypeError("the MPS framework doesn't support float64")
        storage = tensor.untyped_storage()
        if storage.data_ptr():
            self._storages[storage.data_ptr()] = storage

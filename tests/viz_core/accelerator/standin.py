"""A stand-in accelerator: a device of its own whose tensors hold their numbers in CPU tensors.

A GPU machine fails where a tensor was left behind on the CPU, and so does this device, on any machine. Operations run
on the CPU, so results can be compared. Use it in a process of its own: it registers a device of torch for good.
"""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import torch
from torch.utils import backend_registration
from torch.utils._device import _device_constructors
from torch.utils._mode_utils import no_dispatch
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

NAME = "standin"
# Between devices, and with the lengths of packed sequences, which are on the CPU for every device.
_TAKES_BOTH = {"aten::_to_copy", "aten::copy_", "aten::to", "aten::_copy_from"}
_TAKES_BOTH |= {"aten::_pack_padded_sequence", "aten::_pad_packed_sequence"}


class MixedDevicesError(RuntimeError):
    """A CPU tensor of one or more dimensions met one of the device, as no GPU allows."""


class StandinTensor(torch.Tensor):
    numbers: torch.Tensor

    @staticmethod
    def __new__(cls, numbers: torch.Tensor) -> "StandinTensor":
        own = {"strides": numbers.stride(), "storage_offset": numbers.storage_offset(), "dtype": numbers.dtype}
        make: Any = torch.Tensor._make_wrapper_subclass  # type: ignore[attr-defined]
        made = make(cls, numbers.size(), **own, device=f"{NAME}:0", requires_grad=False)
        made.numbers = numbers
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:  # that of torch copies the storage, which is the CPU's
        copied: Any = self.detach().clone()
        if isinstance(self, torch.nn.Parameter):
            copied = torch.nn.Parameter(copied, self.requires_grad)
        return memo.setdefault(id(self), copied)

    def __getitem__(self, index: Any) -> Any:
        return super().__getitem__(indices_on_device(index, self.device))

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(indices_on_device(index, self.device), value)

    def data_ptr(self) -> int:
        return self.numbers.data_ptr()

    def untyped_storage(self) -> torch.UntypedStorage:
        return self.numbers.untyped_storage()

    def tolist(self) -> Any:
        return self.numbers.tolist()

    def numpy(self, *, force: bool = False) -> Any:
        if not force:
            raise TypeError("can't convert standin:0 device type tensor to numpy. Use Tensor.cpu() first.")
        return self.detach().cpu().numpy()


def indices_on_device(index: Any, device: torch.device) -> Any:
    """An index with tensors of the device in place of Python lists, which torch turns into CPU tensors by itself."""
    parts = index if isinstance(index, tuple) else (index,)
    made = tuple(torch.tensor(list(part)).to(device) if isinstance(part, list | range) else part for part in parts)
    return made if isinstance(index, tuple) else made[0]


def _is_on_device(device: Any) -> bool:
    return device is not None and torch.device(device).type == NAME


def _run(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    flat, shape = tree_flatten((args, kwargs))
    on_device = any(isinstance(each, StandinTensor) for each in flat)
    name = func._schema.name
    if on_device and name not in _TAKES_BOTH and not name.startswith("aten::index"):
        for each in flat:
            if isinstance(each, torch.Tensor) and not isinstance(each, StandinTensor) and each.dim() > 0:
                raise MixedDevicesError(f"{name}: a CPU tensor {tuple(each.shape)} meets tensors of the device")
    target = kwargs.get("device")
    wraps = _is_on_device(target) or (on_device and target is None)
    here = [torch.device("cpu") if isinstance(x, torch.device) and x.type == NAME else x for x in flat]
    plain_args, plain_kwargs = tree_unflatten([x.numbers if isinstance(x, StandinTensor) else x for x in here], shape)
    if name == "aten::copy_":  # between devices, in either direction
        plain_args[0].copy_(plain_args[1])
        return args[0]
    result = (_OWN_KERNELS.get(name) or func)(*plain_args, **plain_kwargs)
    if torch.Tag.inplace_view in func.tags:  # transpose_ and the like: the shape changes too, as on "meta"
        _change_shape(func, args, kwargs)
    if name.endswith("_") and args and isinstance(args[0], torch.Tensor):
        return args[0]
    if kwargs.get("out") is not None:
        return kwargs["out"]
    if not wraps:
        return result
    if name == "aten::_pack_padded_sequence":
        return StandinTensor(result[0]), result[1]
    return tree_map(lambda each: StandinTensor(each) if type(each) is torch.Tensor else each, result)


def _change_shape(func: Any, args: Any, kwargs: dict[str, Any]) -> None:
    with no_dispatch():
        before = torch._C._meta_in_tls_dispatch_include()
        torch._C._set_meta_in_tls_dispatch_include(True)
        try:
            func(*args, **kwargs)
        finally:
            torch._C._set_meta_in_tls_dispatch_include(before)


def _gru_cell(inputs: Any, hidden: Any, state: Any, input_bias: Any = None, hidden_bias: Any = None) -> Any:
    """The fused cell that torch requests of every device but the CPU (Cho 2014)."""
    inputs = inputs if input_bias is None else inputs + input_bias
    hidden = hidden if hidden_bias is None else hidden + hidden_bias
    (i_r, i_z, i_n), (h_r, h_z, h_n) = inputs.chunk(3, dim=-1), hidden.chunk(3, dim=-1)
    reset, update = (i_r + h_r).sigmoid(), (i_z + h_z).sigmoid()
    new = (i_n + reset * h_n).tanh()
    return new + update * (state - new), torch.empty(0)


_OWN_KERNELS = {"aten::_thnn_fused_gru_cell": _gru_cell}
# What torch requests of the module of a device.
_MODULE = SimpleNamespace(
    get_amp_supported_dtype=lambda: [torch.float16, torch.bfloat16],
    is_available=lambda: True,
    device_count=lambda: 1,
    current_device=lambda: 0,
    is_initialized=lambda: True,
    _is_in_bad_fork=lambda: False,
    manual_seed_all=lambda seed: torch.default_generator.manual_seed(seed),
    get_rng_state=lambda _device=None: torch.get_rng_state(),
    set_rng_state=lambda state, _device=None: torch.set_rng_state(state),
)


_libraries: list[torch.library.Library] = []  # unregistered when they are collected


def register() -> torch.device:
    """Register the device and return it. `torch.inference_mode` becomes `no_grad`: import viz_core after this."""
    torch.__future__.set_overwrite_module_params_on_conversion(True)  # `.data = ` leaves `numbers` as they were
    backend_registration._setup_privateuseone_for_python_backend(NAME, backend_module=_MODULE)
    _libraries.extend(torch.library.Library(name, "IMPL", "PrivateUse1") for name in ("_", "aten"))
    _libraries[0].fallback(lambda _, func, *args, **kwargs: _run(func, args, kwargs), "PrivateUse1", with_keyset=True)
    for name in ("arange", "arange.start", "arange.start_step"):  # torch's own resize an empty tensor, which we cannot
        _libraries[1].impl(name, _arange)
    torch.inference_mode = _inference_mode  # type: ignore[assignment,misc]
    _device_constructors()  # a cached set of torch's own factories, before two are replaced
    for name in ("tensor", "as_tensor"):
        setattr(torch, name, _on_the_cpu_first(getattr(torch, name)))
    return torch.device(f"{NAME}:0")


def _arange(*bounds: float, dtype: torch.dtype | None = None, **_: Any) -> StandinTensor:
    return StandinTensor(torch.arange(*bounds, dtype=dtype, device="cpu"))


def _inference_mode(mode: Any = True) -> Any:
    """Tensors of inference mode cannot be wrapped; without gradients the numbers are the same."""
    if callable(mode):
        return torch.no_grad()(mode)
    return torch.no_grad() if mode else nullcontext()


def _on_the_cpu_first(factory: Any) -> Any:
    def make(data: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        if isinstance(data, StandinTensor) or not _is_on_device(kwargs.get("device")):
            return factory(data, *args, **kwargs)
        device = kwargs.pop("device")
        return factory(data, *args, **kwargs).to(device)

    return make

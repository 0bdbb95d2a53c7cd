"""The private names of torch that the library uses: each registers itself, with what needs it, where it is imported."""

import inspect
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode as TorchDispatchMode  # the module alone is private
from torch.utils.checkpoint import CheckpointFunction, checkpoint

from viz_core.runtime import packages as private_names
from viz_core.runtime.packages import PrivateName

_NAMES: dict[str, PrivateName] = {}


def declare(path: str, purpose: str) -> PrivateName:
    """Register a private name, "module:attribute", with what needs it: "recording within torch.func"."""
    return _NAMES.setdefault(path, PrivateName(path, purpose, f"{purpose} does not work"))


def private(path: str, purpose: str, default: Callable[..., Any] | None = None) -> Any:
    """Register a private name and return its object; where torch has none, the default.

    Without a default, the stand-in raises RuntimeError when it is called.
    """
    name = declare(path, purpose)
    module, attribute = path.split(":")
    if _is_loaded(name) and private_names.exists(path):
        return attrgetter(attribute)(sys.modules[module])
    return default or partial(_raise_missing, name)


def missing() -> list[PrivateName]:
    """Return the private names that this version of torch lacks; not of modules that are not imported yet."""
    return private_names.missing(filter(_is_loaded, _NAMES.values()))


@cache
def warn_missing() -> None:
    """Warn of each missing name, once."""
    for name in missing():
        warnings.warn(_message(name), RuntimeWarning, stacklevel=3)


def _is_loaded(name: PrivateName) -> bool:
    return name.path.split(":")[0] in sys.modules


def _message(name: PrivateName) -> str:
    here = f"torch {torch.__version__} has no {name.path.replace(':', '.')}"
    return f"{here}, so {name.without}; install torch>=2.9,<2.16"


def _raise_missing(name: PrivateName, *_args: Any, **_kwargs: Any) -> Any:
    raise RuntimeError(_message(name))


_is_wrapped = private(
    "torch._C._functorch:is_functorch_wrapped_tensor", "refusing torch.func's transforms", default=lambda _: False
)
_graph_task_id = private(
    "torch._C:_current_graph_task_id", "refusing second runs of activation checkpointing", default=lambda: -1
)


class _Blocks(threading.local):
    """How many blocks of this thread record or edit: torch guards its graphs by this number, thread by thread."""

    def __init__(self) -> None:
        self.num_open = 0  # no attribute of the class: torch does not guard one that a thread adds


_blocks = _Blocks()


@contextmanager
def without_graphs() -> Iterator[None]:
    """Refuse, in this block and thread, what torch.compile makes of a layer: a graph passes by every recorder."""
    if torch.compiler.is_compiling():
        _refuse_graph("record and intervene")
    warn_missing()
    _blocks.num_open += 1
    try:
        yield
    finally:
        _blocks.num_open -= 1


def in_graph(site: str | None = None) -> bool:
    """Whether a graph is made of this code; ValueError, which torch wraps, where this thread records or edits."""
    if not torch.compiler.is_compiling():
        return False
    if _blocks.num_open:
        _refuse_graph(_described(site))
    return True


def _refuse_graph(layer: str) -> None:
    raise ValueError(
        f"{layer}: torch.compile cannot be recorded or edited; run the model uncompiled in this block, and give "
        "record(torch_calls=...) a model that calls flex_attention, which compiles itself"
    )


# As torch.compiler.assume_constant_result does, which loads the compiler: this runs, and raises, as plain Python.
_refuse_graph._dynamo_marked_constant = True  # type: ignore[attr-defined]


def is_transformed(tensor: Tensor) -> bool:
    """Whether a tensor belongs to a transform of `torch.func`, and is gone when it ends."""
    return bool(_is_wrapped(tensor))


def refuse_transformed(tensors: Iterable[Tensor], site: str | None) -> None:
    """Raise ValueError if a tensor belongs to a transform of `torch.func`, which no recording outlasts."""
    if any(map(is_transformed, tensors)):
        raise ValueError(f"{_described(site)}: torch.func (vmap, grad) cannot be recorded; give a batch")


def refuse_second_run(site: str | None) -> None:
    """Raise ValueError within a backward pass, where activation checkpointing runs a layer again."""
    if _graph_task_id() != -1:
        raise ValueError(
            f"{_described(site)}: the second run of activation checkpointing cannot be recorded or edited; "
            "call backward outside the block, or turn checkpointing off"
        )


def refuse_checkpoint(site: str | None) -> None:
    """Raise ValueError within activation checkpointing, whose second run would lack the edits of the first."""
    refuse_second_run(site)
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code in _CHECKPOINTS:
            raise ValueError(f"{_described(site)}: activation checkpointing cannot be edited; turn it off")
        frame = frame.f_back  # type: ignore[assignment]


_CHECKPOINTS = {inspect.unwrap(function).__code__ for function in (checkpoint, CheckpointFunction.forward)}


def _described(site: str | None) -> str:
    return "a layer without a name" if site is None else f"site {site!r}"


_PURPOSE = "recording plain PyTorch (torch_calls)"

_current_mode = private("torch.overrides:_get_current_function_mode", _PURPOSE, default=lambda: None)
_pop_mode = private("torch.overrides:_pop_mode", _PURPOSE)
_push_mode = private("torch.overrides:_push_mode", _PURPOSE)
without_modes = private("torch._C:DisableTorchFunction", _PURPOSE)
"""A block in which no mode and no tensor subclass sees a call."""

native_multi_head_attention = private(
    "torch:_native_multi_head_attention", "recording the fast path of nn.MultiheadAttention"
)
transformer_encoder_layer = private(
    "torch:_transformer_encoder_layer_fwd", "recording the fast path of nn.TransformerEncoderLayer"
)


class FastPathMode(TorchFunctionMode):
    """A mode that changes no call, and so leaves torch's fast path open.

    On the fast path one kernel runs a whole layer of `nn.MultiheadAttention` or `nn.TransformerEncoder`. These ask
    `torch.overrides.has_torch_function`, which says yes where any mode is active. The slow path differs from the fast
    one in rounding, and at padding, which the fast path answers with zeros.

    Args:
        closed: close it all the same.
    """

    def __init__(self, closed: bool = False) -> None:
        super().__init__()
        self.closed = closed

    def __enter__(self) -> Any:
        _count_modes(1)
        return super().__enter__()

    def __exit__(self, *_error: object) -> None:
        remove_mode(self)
        _count_modes(-1)


def remove_mode(mode: TorchFunctionMode) -> None:
    """Remove a mode from wherever it is on the stack: tasks that share a thread end in any order."""
    above = []
    while (top := _pop_mode()) is not mode:
        above.append(top)
    for each in reversed(above):
        _push_mode(each)


@contextmanager
def without_fast_path_modes() -> Iterator[None]:
    """No FastPathMode sees a call in this block; other modes do, which torch's own functions may rely on."""
    with _modes_replaced(lambda mode: not isinstance(mode, FastPathMode)):
        yield


@contextmanager
def only_mode(mode: TorchFunctionMode) -> Iterator[None]:
    """No other mode sees a call in this block."""
    with _modes_replaced(lambda _: False), mode:
        yield


@contextmanager
def _modes_replaced(stays: Callable[[TorchFunctionMode], bool]) -> Iterator[None]:
    modes = list[TorchFunctionMode]()
    while _current_mode() is not None:
        modes.insert(0, _pop_mode())
    others = [mode for mode in modes if stays(mode)]
    for mode in others:
        _push_mode(mode)
    try:
        yield
    finally:
        for _ in others:
            _pop_mode()
        for mode in modes:
            _push_mode(mode)


class _Answer:
    """`has_torch_function`, answered as if no FastPathMode were at the top of the stack."""

    def __init__(self, original: Callable[[Iterable[Any]], bool]) -> None:
        self.original = original

    def __call__(self, tensors: Iterable[Any]) -> bool:
        current = _current_mode()
        if not isinstance(current, FastPathMode) or current.closed:
            return self.original(tensors)
        mode = _pop_mode()
        try:
            return self(tensors)
        finally:
            _push_mode(mode)


_num_modes = 0  # in all threads
_changing = threading.Lock()


def _count_modes(step: int) -> None:
    """Replace `torch.overrides.has_torch_function` while any FastPathMode is active, in any thread.

    What stood there comes back with the last one, unless another library has put its own function there meanwhile:
    that one stays, and the answer under it is the original's, as no mode is left.
    """
    global _num_modes
    with _changing:
        _num_modes += step
        answer = torch.overrides.has_torch_function
        if step > 0 and not isinstance(answer, _Answer):
            torch.overrides.has_torch_function = _Answer(answer)  # type: ignore[assignment]
        elif not _num_modes and isinstance(answer, _Answer):
            torch.overrides.has_torch_function = answer.original  # type: ignore[assignment]

"""The stack of TorchFunctionModes of a thread, and torch's fast path: its kernels, and modes that leave it open."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode as TorchDispatchMode  # the module alone is private

from viz_core.torch_internals.register import private

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

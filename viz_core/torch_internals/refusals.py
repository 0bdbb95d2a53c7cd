"""Where attention is neither recorded nor edited: graphs of torch.compile, torch.func, second runs of checkpointing."""

import inspect
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.utils.checkpoint import CheckpointFunction, checkpoint

from viz_core.torch_internals.register import private, warn_missing

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

"""torch.compile beside a recorder: a graph contains no recorder, so a thread that records runs nothing compiled."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch

from viz_core.torch_internals.register import declare, warn_missing

_EVAL_FRAME = "torch._dynamo.eval_frame"
for _name in ("_stance", "set_eval_frame"):
    declare(f"{_EVAL_FRAME}:{_name}", "recording and editing compiled models")

_runs_eagerly: ContextVar[bool] = ContextVar("runs_eagerly", default=False)
_changing = threading.Lock()
_num_open = 0  # blocks in all threads
_num_early = 0  # those that began before the compiler was loaded
_some_early = False  # the same as a truth value, by which graphs are guarded


@contextmanager
def run_eagerly() -> Iterator[None]:
    """Run compiled functions as plain Python in this block, in this thread or task alone.

    Other threads keep their graphs, and so does this one after the block. If the compiler is loaded only within the
    block, the first graph breaks at the recorder instead: `must_break_graph`.
    """
    warn_missing()
    token = _runs_eagerly.set(True)
    compiler = _compiler()
    around = compiler.set_eval_frame(None) if compiler else None  # suspend this thread's graph, if there is one
    _count(1, early=not compiler)
    _replace_stance()
    try:
        yield
    finally:
        _count(-1, early=not compiler)
        if compiler:
            compiler.set_eval_frame(around)
        _runs_eagerly.reset(token)


def must_break_graph() -> bool:
    """Whether the graph that is being made must end here, because this thread records.

    Torch guards such a graph by this answer: it is made again, whole, once no block needs it broken.
    """
    return _is_traced_for_recorder() and _some_early


def break_graph(reason: str) -> None:
    """End the graph that is being made; an error where the caller asked for `fullgraph=True`."""
    torch._dynamo.graph_break(reason)


def _compiler() -> Any:
    """The part of torch that runs graphs; None before it is loaded, which takes seconds."""
    module = sys.modules.get(_EVAL_FRAME)
    return module if hasattr(module, "_stance") and hasattr(module, "set_eval_frame") else None


class _ThreadStance:
    """Torch's stance, "force_eager" for threads that record.

    Torch reads it at each call of a compiled function. `torch.compiler.set_stance` would do this for all threads.
    """

    def __init__(self, original: Any) -> None:
        self.original = original  # torch's own, or the caller's: `torch.compiler.set_stance`

    @property
    def stance(self) -> str:
        return "force_eager" if _runs_eagerly.get() else str(self.original.stance)

    def __getattr__(self, name: str) -> Any:
        if name == "original" or name.startswith("__"):  # a copy that is being made has none yet
            raise AttributeError(name)
        return getattr(self.original, name)


def _replace_stance() -> None:
    """Replace torch's stance until the last block ends."""
    compiler = _compiler()
    with _changing:
        if compiler and _num_open and not isinstance(compiler._stance, _ThreadStance):
            compiler._stance = _ThreadStance(compiler._stance)


def _is_traced_for_recorder() -> bool:
    """Whether this thread records. While a graph is made this runs as Python, and the answer becomes part of it."""
    _replace_stance()  # threads that record must not run this graph
    return _runs_eagerly.get()


# As torch.compiler.assume_constant_result does, which loads the compiler.
_is_traced_for_recorder._dynamo_marked_constant = True  # type: ignore[attr-defined]


def _count(step: int, early: bool) -> None:
    """Count the blocks, and put torch's stance back with the last, unless a caller has set another meanwhile."""
    global _num_open, _num_early, _some_early
    compiler = _compiler()
    with _changing:
        _num_open += step
        _num_early += step if early else 0
        _some_early = _num_early > 0
        if compiler and not _num_open and isinstance(compiler._stance, _ThreadStance):
            compiler._stance = compiler._stance.original

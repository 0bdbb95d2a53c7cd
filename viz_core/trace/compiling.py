"""The recorder and torch.compile: a graph holds no recorder, so who records runs nothing compiled."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch

_here: ContextVar[bool] = ContextVar("uncompiled", default=False)
_counting = threading.Lock()
_unheld = 0  # blocks in all threads that began without a hold on the compiler
_some_unheld = False  # the same as a truth value, by which graphs are guarded


@contextmanager
def uncompiled() -> Iterator[None]:
    """In this block, for this thread or task, compiled functions run as the Python they were made of.

    For all others, and after it for this one too, each is the graph that it was. Where the compiler is loaded only
    within the block, the first graph breaks at the recorder instead: `breaks_graphs`.
    """
    token = _here.set(True)
    try:
        with _held() if _compiler() else _counted():
            yield
    finally:
        _here.reset(token)


def breaks_graphs() -> bool:
    """Whether the graph that is being made must end here, as this thread records.

    Torch guards such a graph by the last answer: it is made anew, whole, once nobody needs it broken.
    """
    return _traced_for_a_recorder() and _some_unheld


def _compiler() -> Any:
    """The part of torch that runs graphs, if it is loaded: that takes seconds."""
    return sys.modules.get("torch._dynamo.eval_frame")


@contextmanager
def _held() -> Iterator[None]:
    """Nothing compiled runs: neither what this block is part of, nor what is called in it."""
    compiler = _compiler()
    around = compiler.set_eval_frame(None)  # this thread's
    _ask_us_first(compiler)
    try:
        yield
    finally:
        compiler.set_eval_frame(around)


@contextmanager
def _counted() -> Iterator[None]:
    """Graphs made in this block break; they are guarded by whether there is such a block."""
    _count(1)
    try:
        yield
    finally:
        _count(-1)


class _Stance:
    """What torch asks at each call of a compiled function, in the thread that calls: shall it run, and how?"""

    def __init__(self, others: Any) -> None:
        self.others = others  # torch's own, or one of the caller's: `torch.compiler.set_stance`

    @property
    def stance(self) -> str:
        return "force_eager" if _here.get() else str(self.others.stance)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.others, name)


def _ask_us_first(compiler: Any) -> None:
    """Nothing of it need be taken back: whoever is in no such block gets the answer they had."""
    if not isinstance(compiler._stance, _Stance):
        compiler._stance = _Stance(compiler._stance)


def _traced_for_a_recorder() -> bool:
    """Whether this thread records. While a graph is made this runs as Python, and the answer becomes part of it."""
    _ask_us_first(torch._dynamo.eval_frame)  # the graph is not for those who record
    return _here.get()


_traced_for_a_recorder._dynamo_marked_constant = True  # type: ignore[attr-defined]  # as its decorator does, unimported


def _count(step: int) -> None:
    global _unheld, _some_unheld
    with _counting:
        _unheld += step
        _some_unheld = _unheld > 0

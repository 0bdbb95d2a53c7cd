"""The recorder and torch.compile: a graph holds no recorder, so nothing compiled runs while somebody records."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

_changing = threading.Lock()
_blocks = 0  # that record now, in all threads
_stance: Any = None  # torch's, while it holds compiled functions back
_missed = False  # whether somebody records and compiled functions run all the same


@contextmanager
def uncompiled() -> Iterator[None]:
    """While such a block lasts, in whatever thread, compiled functions run as the Python they were made of.

    `torch.compiler.set_stance("force_eager")` does that, for the whole process; the last block to end takes it back,
    and each function is the graph again that it was. Where the compiler is not loaded yet, or the block itself is
    part of what is compiled, graphs break at the recorder instead: `breaks_graphs`.
    """
    _count(1)
    try:
        yield
    finally:
        _count(-1)


def breaks_graphs() -> bool:
    """Whether a graph that is being made must end here, as somebody might record; torch guards by the answer."""
    return _missed


def _count(step: int) -> None:
    global _blocks, _stance, _missed
    with _changing:
        _blocks += step
        try:
            if _blocks and _stance is None and "torch._dynamo" in sys.modules:  # importing it takes seconds
                _stance = torch.compiler.set_stance("force_eager")
            elif not _blocks and _stance is not None:
                _stance.__exit__(None, None, None)
                _stance = None
        except RuntimeError:  # within what is compiled nobody may change it
            pass
        _missed = _blocks > 0 and _stance is None

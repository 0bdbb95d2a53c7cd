"""Independent pieces of long work on all cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import lru_cache
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def side_by_side(work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """[work(item) for item in items], several at a time. What one raises is raised, and ends the others.

    torch computes without Python's lock, so threads do. All callers share as many as there are cores, less those that
    torch itself takes for one operation; with one of them, or one piece, all is done here, one after the other.
    """
    pieces = list(items)
    threads = max(1, (os.cpu_count() or 1) // torch.get_num_threads())
    if threads == 1 or len(pieces) == 1:
        return [work(piece) for piece in pieces]
    # Each piece sees the context of who asked: whether it may go on, and who records.
    contexts = [copy_context() for _ in pieces]
    return list(_pool(threads).map(lambda context, piece: context.run(work, piece), contexts, pieces))


@lru_cache(maxsize=1)
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="side-by-side")

"""Run independent tasks on all cores."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import lru_cache
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def parallel_map(work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Return [work(item) for item in items], computed in threads; an error in one is raised.

    torch computes without Python's lock, so threads suffice. All callers share a pool of cores / torch threads; with a
    pool of one, or one item, items are computed here, one after the other.
    """
    tasks = list(items)
    threads = max(1, (os.cpu_count() or 1) // torch.get_num_threads())
    if threads == 1 or len(tasks) == 1:
        return [work(task) for task in tasks]
    # Each item runs in a copy of the caller's context: its interruption and its recorder.
    contexts = [copy_context() for _ in tasks]
    return list(_pool(threads).map(lambda context, task: context.run(work, task), contexts, tasks))


@lru_cache(maxsize=1)
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="parallel")

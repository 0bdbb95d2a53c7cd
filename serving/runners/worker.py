"""A worker process with its own models, started by `serving.runners.worker_pool`, that receives tasks over a pipe.

Sentences that arrive during a translation are then translated in one batch.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import torch

from serving.compute.cache import LRUCache
from serving.compute.slots import AbandonedError
from serving.models.model_registry import ModelRegistry
from serving.models.model_spec import ShippedClassifier, ShippedTranslator
from serving.runners.model_server import ModelServer
from serving.runners.serialization import pack
from serving.settings import settings
from viz_core.pretrained import available
from viz_core.runtime.interruption import interruptible

CANCEL = "cancel"
_BATCH = 16
_MAX_RESULTS = 512
_OTHERS = 2  # threads for other tasks: a long one must not delay short ones


class Task(NamedTuple):
    """A call of a method of `ModelServer` or "outline"; or CANCEL, which cancels the task of this number."""

    number: int
    method: str
    subject: Any = None
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}  # noqa: RUF012  # never written to


class TaskResult(NamedTuple):
    """The value that a task returned, or the error that it raised."""

    number: int
    value: Any
    raised: bool = False


class TaskExecutor:
    """Runs tasks in threads.

    Args:
        server: whose methods are called.
        send: sends a result; called from any thread.
    """

    def __init__(self, server: ModelServer, send: Callable[[TaskResult], None]) -> None:
        self._server, self._send = server, send
        self._cancelled: dict[int, threading.Event] = {}
        self._waiting: SimpleQueue[Task] = SimpleQueue()
        self._sentences, self._others = ThreadPoolExecutor(1), ThreadPoolExecutor(_OTHERS)

    def submit(self, task: Task) -> None:
        """Run a task, whose result is sent."""
        if task.method == CANCEL:
            self._cancelled.get(task.number, threading.Event()).set()
            return
        self._cancelled[task.number] = threading.Event()
        if task.method == "outline" and task.subject.in_batches:
            self._waiting.put(task)
            self._sentences.submit(self._run_batch)
        else:
            self._others.submit(self._run, [task], lambda: [self._call(task)])

    def _run_batch(self) -> None:
        """Run all waiting sentences in one batch; nothing if an earlier batch included them."""
        batch: list[Task] = []
        with suppress(Empty):
            while len(batch) < _BATCH:
                batch.append(self._waiting.get_nowait())
        if batch:
            self._run(batch, lambda: self._server.outlines([one.subject for one in batch]))

    def _call(self, task: Task) -> Any:
        if task.method == "outline":
            return self._server.outlines([task.subject])[0]
        if task.method not in ModelServer.methods:
            raise ValueError(f"method: expected one of {', '.join(ModelServer.methods)}, got {task.method!r}")
        return getattr(self._server, task.method)(task.subject, *task.args, **task.kwargs)

    def _run(self, tasks: list[Task], work: Callable[[], list[Any]]) -> None:
        """Do the work of some tasks until all of them are cancelled."""
        cancelled = [self._cancelled[one.number] for one in tasks]

        def check() -> None:
            if all(one.is_set() for one in cancelled):
                raise AbandonedError(tasks[0].method)

        try:
            with interruptible(check):
                values = work()
        except BaseException as error:  # a Rust library's panic is not an Exception, and the caller waits for a result
            values = [error] * len(tasks)
        for one, value in zip(tasks, values, strict=True):
            del self._cancelled[one.number]
            self._send(TaskResult(one.number, value, isinstance(value, BaseException)))


def _packed(result: TaskResult) -> bytes:
    """A pickled result; an error that cannot be pickled is replaced by its text."""
    try:
        packed = pack(result)
        if result.raised:
            pickle.loads(packed)  # errors with their own constructors may fail here
        return packed
    except Exception:
        error = RuntimeError(f"{type(result.value).__name__}: {result.value}")
        return pickle.dumps(TaskResult(result.number, error, raised=True))


def serve(connection: Connection, server: ModelServer) -> None:
    """Run the tasks of a connection until its other end is closed."""
    sending = threading.Lock()

    def send(result: TaskResult) -> None:
        packed = _packed(result)
        with sending, suppress(OSError):  # the other end is closed
            connection.send_bytes(packed)

    executor = TaskExecutor(server, send)
    with suppress(EOFError, OSError):
        while True:
            executor.submit(pickle.loads(connection.recv_bytes()))


def load_shipped(registry: ModelRegistry) -> None:
    """Load the models that ship; one that cannot be loaded says so when it is asked for."""
    for card in available(task="translation"):
        with suppress(ValueError):
            registry(ShippedTranslator(card.name))
    for card in available(task="classification"):
        with suppress(ValueError):
            registry(ShippedClassifier(card.name))


def main(end: int) -> None:
    """Run a worker process on its end of the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the server, which ends its workers
    run(end, ModelRegistry())


def run(end: int, registry: ModelRegistry) -> None:
    """Run this process as a worker, with the models that are loaded already."""
    torch.set_num_threads(1)
    cache_bytes = settings().cache_mb * 2**20 // max(1, settings().workers)
    serve(Connection(end), ModelServer(registry, LRUCache(_MAX_RESULTS, cache_bytes)))
    os._exit(0)  # without waiting for running tasks

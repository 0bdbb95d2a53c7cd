"""Models in worker processes, so that all cores of this machine are used.

The same request always goes to the same worker, which caches its run. A worker that dies, or does not stop in time, is
replaced, and its tasks are sent again.
"""

from __future__ import annotations

import itertools
import os
import pickle
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from serving.compute.slots import BusyError
from serving.models.model_spec import ModelSpec
from serving.requests.request import RunRequest
from serving.runners.worker import CANCEL, Task, TaskResult
from serving.runners.worker_template import CopiedProcess, WorkerTemplate, can_copy
from viz_core.runtime.interruption import may_end

_TRIES = 3  # for a task that ends its worker each time
_STEP = 0.5  # seconds between two checks whether the result is still needed
_GRACE = 5.0  # seconds in which a cancelled task must end
_FIRST_PAUSE, _LONGEST_PAUSE = 0.0, 30.0  # seconds before a worker that died at once is started again
_SOON = 10.0  # seconds: a worker with a shorter life died at once
_ROOT = Path(__file__).resolve().parents[2]


class WorkerDiedError(Exception):
    """The process ended before it returned a result."""


class WorkerPool:
    """`count` workers; `execute` is the one that a `RemoteRunner` takes.

    Raises:
        ValueError: if count < 1.
    """

    def __init__(self, count: int) -> None:
        if count < 1:
            raise ValueError(f"count: expected at least 1 worker, got {count}")
        path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
        self._template = WorkerTemplate(environment) if can_copy() else None
        with ThreadPoolExecutor(count) as threads:
            made = [threads.submit(Worker, environment, self._template) for _ in range(count)]
        self.workers = tuple(one.result() for one in made)

    def execute(self, method: str, subject: ModelSpec[Any] | RunRequest[Any, Any], *args: Any, **kwargs: Any) -> Any:
        """Call a method of the subject's worker and return its result; "warm" is called in all workers.

        Raises:
            BusyError: if the worker died in every try.
        """
        if method == "warm":
            with ThreadPoolExecutor(len(self.workers)) as threads:
                list(threads.map(lambda worker: worker.warm(subject), self.workers))
            return None
        model = subject if isinstance(subject, ModelSpec) else subject.model
        worker = self.workers[hash(model.affinity or subject) % len(self.workers)]
        return worker.execute(method, subject, *args, **kwargs)

    def close(self) -> None:
        """End all workers."""
        for worker in self.workers:
            worker.close()
        if self._template is not None:
            self._template.close()


class Worker:
    """A worker process, which is replaced when it ends.

    Args:
        environment: of the process.
        template: of which it is a copy, or None.
    """

    def __init__(self, environment: Mapping[str, str], template: WorkerTemplate | None) -> None:
        self._environment, self._template = environment, template
        self._numbers = itertools.count()
        self._changing = threading.Condition()
        self._pending: dict[int, Future[Any]] = {}
        self._warmed: list[Any] = []
        self._connection: Connection | None = None
        self._closed = False
        self.process = self._start()

    def execute(self, method: str, subject: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a method in the process, again if the process dies, and return its result.

        Raises:
            BusyError: if it died in every try.
        """
        for _ in range(_TRIES):
            try:
                return self._call(method, subject, *args, **kwargs)
            except WorkerDiedError:
                may_end()
        raise BusyError(method)

    def warm(self, request: Any) -> None:
        """Run a request in this process, and in each that replaces it."""
        if request not in self._warmed:
            self._warmed.append(request)
        self.execute("warm", request)

    def close(self) -> None:
        """End the process for good."""
        with self._changing:
            self._closed = True
            self._changing.notify_all()
        self.process.kill()
        self.process.wait()

    def _call(self, method: str, subject: Any, *args: Any, **kwargs: Any) -> Any:
        future: Future[Any] = Future()
        number = self._send(method, subject, args, kwargs, future)
        while True:
            try:
                return future.result(_STEP)
            except TimeoutError:
                if future.done():
                    raise
                try:
                    may_end()
                except BaseException:
                    self._cancel(number, future)
                    raise

    def _send(self, method: str, subject: Any, args: Any, kwargs: Any, future: Future[Any]) -> int:
        while True:
            with self._changing:
                if self._changing.wait_for(lambda: self._connection is not None or self._closed, _STEP):
                    if self._connection is None:
                        raise BusyError(method)
                    number = next(self._numbers)
                    packed = pickle.dumps(Task(number, method, subject, args, kwargs))
                    self._pending[number] = future
                    with suppress(OSError):  # the process is ending: `_receive` will notice
                        self._connection.send_bytes(packed)
                    return number
            may_end()

    def _cancel(self, number: int, future: Future[Any]) -> None:
        """Cancel a task, and kill the process if the task does not end."""
        process = self.process
        with self._changing:
            if self._connection is not None:
                with suppress(OSError):
                    self._connection.send_bytes(pickle.dumps(Task(number, CANCEL)))

        def end() -> None:
            if not future.done():
                process.kill()

        timer = threading.Timer(_GRACE, end)
        timer.daemon = True
        timer.start()

    def _start(self, pause: float = _FIRST_PAUSE) -> subprocess.Popen[bytes] | CopiedProcess:
        """Start a process, and a thread that receives its results."""
        ours, theirs = socket.socketpair()
        with theirs:
            process = self._process_for(theirs.fileno())
        connection = Connection(ours.detach())
        with self._changing:
            self._connection = connection
            self._changing.notify_all()
        threading.Thread(target=self._receive, args=(process, connection, pause), daemon=True).start()
        return process

    def _process_for(self, end: int) -> subprocess.Popen[bytes] | CopiedProcess:
        """A process on this end of a pipe: a copy of the template, or one that imports everything itself."""
        copied = None if self._template is None else self._template.copy(end)
        return copied or subprocess.Popen(
            [sys.executable, "-c", f"from serving.runners.worker import main; main({end})"],
            pass_fds=[end],
            env=self._environment,
        )

    def _receive(self, process: subprocess.Popen[bytes] | CopiedProcess, connection: Connection, pause: float) -> None:
        """Pass results on until the process ends, then start another."""
        start = time.monotonic()
        with suppress(Exception):  # the pipe is closed or broken
            while True:
                result: TaskResult = pickle.loads(connection.recv_bytes())
                future = self._pending.pop(result.number)
                if result.raised:
                    future.set_exception(result.value)
                else:
                    future.set_result(result.value)
        with self._changing:
            self._connection = None
            unanswered, self._pending = self._pending, {}
        connection.close()
        process.kill()
        process.wait()
        for future in unanswered.values():
            future.set_exception(WorkerDiedError())
        soon = time.monotonic() - start < _SOON
        pause = min(_LONGEST_PAUSE, max(1.0, 2 * pause)) if soon else _FIRST_PAUSE
        with self._changing:
            if self._changing.wait_for(lambda: self._closed, pause):
                return
        self.process = self._start(pause)
        for request in self._warmed:
            with suppress(Exception):  # the next request shows the error
                self.execute("warm", request)

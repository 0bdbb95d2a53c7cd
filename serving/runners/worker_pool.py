"""Models in worker processes of this machine: visitors are served by all its cores, while the pages' process draws.

What a worker knows of a request stays with it, so the same request always goes to the same worker. One that dies, or
does not stop when its time is over, is replaced, and what it was asked is asked again.
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
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from serving.compute.slots import BusyError
from serving.models.model_spec import ModelSpec
from serving.requests.request import Request
from serving.runners.worker import CANCEL, Answer, Question
from viz_core.runtime.interruption import may_end

_TRIES = 3  # a question that ends its worker each time is not asked for ever
_STEP = 0.5  # seconds between two looks at whether the answer is still wanted
_GRACE = 5.0  # seconds in which work that was taken back must have come to its end
_FIRST_PAUSE, _LONGEST_PAUSE = 0.0, 30.0  # seconds before a worker that died at once is started again
_SOON = 10.0  # seconds: who lives shorter died at once
_ROOT = Path(__file__).resolve().parents[2]


class WorkerDiedError(Exception):
    """The process is gone, and what it was asked was not answered."""


class WorkerPool:
    """So many workers, asked by `ask`: the wire of a `RemoteRunner`.

    Raises:
        ValueError: if there shall be none.
    """

    def __init__(self, count: int) -> None:
        if count < 1:
            raise ValueError(f"count: expected at least 1 worker, got {count}")
        self.workers = tuple(Worker() for _ in range(count))

    def ask(self, question: str, subject: ModelSpec[Any] | Request[Any, Any], *args: Any, **kwargs: Any) -> Any:
        """The answer of the worker whose subject it is; to "warm" all of them.

        Raises:
            BusyError: if each worker that was asked died of it.
        """
        if question == "warm":
            with ThreadPoolExecutor(len(self.workers)) as everyone:
                list(everyone.map(lambda worker: worker.warm(subject), self.workers))
            return None
        model = subject if isinstance(subject, ModelSpec) else subject.model
        worker = self.workers[hash(model.affinity or subject) % len(self.workers)]
        return worker.ask(question, subject, *args, **kwargs)

    def close(self) -> None:
        """End all workers: one that is stuck does not hear that nobody is left to ask it."""
        for worker in self.workers:
            worker.close()


class Worker:
    """A worker process, and the next one when it is gone."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._changing = threading.Condition()
        self._pending: dict[int, Future[Any]] = {}
        self._warmed: list[Any] = []
        self._connection: Connection | None = None
        self._closed = False
        self.process = self._start()

    def ask(self, name: str, subject: Any, *args: Any, **kwargs: Any) -> Any:
        """The answer, asked for again where the process dies meanwhile.

        Raises:
            BusyError: if it died too often.
        """
        for _ in range(_TRIES):
            try:
                return self._answer(name, subject, *args, **kwargs)
            except WorkerDiedError:
                may_end()
        raise BusyError(name)

    def warm(self, request: Any) -> None:
        """Have this process, and each that takes its place, answer a request before anybody asks."""
        if request not in self._warmed:
            self._warmed.append(request)
        self.ask("warm", request)

    def close(self) -> None:
        """End the process for good."""
        with self._changing:
            self._closed = True
            self._changing.notify_all()
        self.process.kill()
        self.process.wait()

    def _answer(self, name: str, subject: Any, *args: Any, **kwargs: Any) -> Any:
        future: Future[Any] = Future()
        number = self._send(name, subject, args, kwargs, future)
        while True:
            try:
                return future.result(_STEP)
            except TimeoutError:
                if future.done():
                    raise
                try:
                    may_end()
                except BaseException:
                    self._take_back(number, future)
                    raise

    def _send(self, name: str, subject: Any, args: Any, kwargs: Any, future: Future[Any]) -> int:
        while True:
            with self._changing:
                if self._changing.wait_for(lambda: self._connection is not None or self._closed, _STEP):
                    if self._connection is None:
                        raise BusyError(name)
                    number = next(self._numbers)
                    packed = pickle.dumps(Question(number, name, subject, args, kwargs))
                    self._pending[number] = future
                    with suppress(OSError):  # it dies just now: whoever reads from it will tell
                        self._connection.send_bytes(packed)
                    return number
            may_end()

    def _take_back(self, number: int, future: Future[Any]) -> None:
        """Ask for an end, and make one where none comes."""
        process = self.process
        with self._changing:
            if self._connection is not None:
                with suppress(OSError):
                    self._connection.send_bytes(pickle.dumps(Question(number, CANCEL)))

        def end() -> None:
            if not future.done():
                process.kill()

        timer = threading.Timer(_GRACE, end)
        timer.daemon = True
        timer.start()

    def _start(self, pause: float = _FIRST_PAUSE) -> subprocess.Popen[bytes]:
        """A new process, and a thread that hears what it says."""
        ours, theirs = socket.socketpair()
        with theirs:
            path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
            process = subprocess.Popen(
                [sys.executable, "-c", f"from serving.runners.worker import main; main({theirs.fileno()})"],
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
            )
        connection = Connection(ours.detach())
        with self._changing:
            self._connection = connection
            self._changing.notify_all()
        threading.Thread(target=self._hear, args=(process, connection, pause), daemon=True).start()
        return process

    def _hear(self, process: subprocess.Popen[bytes], connection: Connection, pause: float) -> None:
        """Pass answers on, until the process is gone; then start another."""
        begun = time.monotonic()
        with suppress(Exception):  # the pipe has an end, or says what nobody understands
            while True:
                answer: Answer = pickle.loads(connection.recv_bytes())
                future = self._pending.pop(answer.number)
                if answer.raised:
                    future.set_exception(answer.value)
                else:
                    future.set_result(answer.value)
        with self._changing:
            self._connection = None
            unanswered, self._pending = self._pending, {}
        connection.close()
        process.kill()
        process.wait()
        for future in unanswered.values():
            future.set_exception(WorkerDiedError())
        soon = time.monotonic() - begun < _SOON
        pause = min(_LONGEST_PAUSE, max(1.0, 2 * pause)) if soon else _FIRST_PAUSE
        with self._changing:
            if self._changing.wait_for(lambda: self._closed, pause):
                return
        self.process = self._start(pause)
        for request in self._warmed:
            with suppress(Exception):  # who asks for it will be told
                self.ask("warm", request)

"""Models in worker processes, so that all cores of this machine are used.

The same request always goes to the same worker, which caches its run; models of the lab, which may take minutes to
load, have workers of their own. Sentences that wait for a worker are translated in one batch. A worker that dies, or
does not stop in time, is replaced, and its calls are made again.
"""

import gc
import multiprocessing
import os
import pickle
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future, InvalidStateError, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from serving.compute.slots import BusyError, client_in_slot, timer_in_slot
from serving.requests.models import ModelSpec, NoModel
from serving.requests.request import RunRequest
from serving.runners import worker
from serving.runners.crew import Crew, Task
from serving.runners.worker import CANCEL, EXIT, GO_ON, Call, Result, can_fork
from viz_core.runtime.hooks import CpuTimeError, may_end

_BATCH = 16
_SHORT = 8  # bits of the size of an input: sentences of a line are padded at little cost
_STEP = 0.5  # seconds between two checks whether the result is still needed
_GRACE = 5.0  # seconds in which a cancelled call must end
_ROOT = Path(__file__).resolve().parents[2]
_starting = threading.Lock()


class WorkerPool:
    """`count` workers; `execute` is the one that a `RemoteRunner` takes.

    ValueError if count < 1.

    Args:
        observe_batch: called with the number of sentences in each batch.
    """

    def __init__(self, count: int, observe_batch: Callable[[int], object] = lambda _size: None) -> None:
        if count < 1:
            raise ValueError(f"count: expected at least 1 worker, got {count}")
        crew, lab_crew = Crew(observe_batch), Crew()
        self.workers = tuple(Worker(crew) for _ in range(count))
        self.lab_workers = tuple(Worker(lab_crew) for _ in range(count))  # processes start when they are needed

    def execute(self, method: str, subject: ModelSpec[Any] | RunRequest[Any, Any], *args: Any, **kwargs: Any) -> Any:
        """Call a method in the subject's worker and return its result; "warm" is called in all that may get it.

        BusyError if the worker died in every try.
        """
        model = subject if isinstance(subject, ModelSpec) else subject.model
        workers = self.lab_workers if model.affinity else self.workers
        if method == "warm" and not model.affinity:
            with ThreadPoolExecutor(len(workers)) as threads:
                list(threads.map(lambda one: one.warm(subject), workers))
            return None
        chosen = workers[hash(model.affinity or subject) % len(workers)]
        if not model.affinity:  # a model of the lab takes too long to load in another
            chosen = chosen.or_idle()
        return chosen.execute(method, subject, *args, **kwargs)

    def close(self) -> None:
        """End all workers."""
        for one in (*self.workers, *self.lab_workers):
            one.close()
        gc.collect()  # semaphores are given back to the system when their executors are collected


class Worker:
    """An executor of one process, which is replaced when it ends. Calls wait here, so that sentences form a batch."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        crew.members.append(self)
        self._waiting: list[Task] = []
        self._served = Counter[Hashable]()  # calls of each address since nobody waited
        self._thread = ThreadPoolExecutor(1)
        self._lock = threading.Lock()
        self._warmed: list[Any] = []
        self._executor: ProcessPoolExecutor | None = None
        self._shared: Any = None
        self._closed = False
        self.process: Any = None
        """The running process; None before the first call."""

    def execute(self, method: str, subject: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a method in the process and return its result; once more if it dies and the call reads no folder.

        BusyError if it died in both tries, or this worker is closed.
        """
        timer = timer_in_slot()
        call = Call(method, subject, args, kwargs, None if timer is None else timer.left)
        task = Task(call, Future(), client_in_slot().address, timer)
        with self._lock:
            if self._closed:
                raise BusyError(method)
            self._waiting.append(task)
            self._thread.submit(self._run_waiting)
        while True:
            try:
                return task.future.result(_STEP)
            except TimeoutError:
                if task.future.done():
                    raise
                try:
                    may_end()
                except BaseException:
                    task.future.cancel()
                    raise

    def or_idle(self) -> "Worker":
        """Return this worker, or an idle one of its crew while it computes something long for another address."""
        found = self._crew.free_for(self, client_in_slot().address)
        return found if isinstance(found, Worker) else self

    def wake(self) -> None:
        """Look again for a call that may run."""
        with self._lock:
            if self._waiting and not self._closed:
                self._thread.submit(self._run_waiting)

    def warm(self, request: Any) -> None:
        """Run a request in this process, and in each that replaces it."""
        self.execute("warm", request)
        if request not in self._warmed:
            self._warmed.append(request)

    def close(self) -> None:
        """End the process for good."""
        with self._lock:
            self._closed = True
            self._end()
        self._thread.shutdown()  # the running call ends with its process

    def _run_waiting(self) -> None:
        """Run the first waiting call, with all sentences if it is one; nothing if an earlier batch had it."""
        tasks, start = self._next_tasks(), time.monotonic()
        if not tasks:
            return
        try:
            self._run(tasks)
        except BrokenExecutor:
            for one in tasks:  # alone, so that one that kills its worker takes no other with it
                if _reads_folders(one):
                    _finish(one, Result(BusyError(one.call.method), raised=True))
                    continue
                try:
                    self._run([one])
                except BrokenExecutor:
                    _finish(one, Result(BusyError(one.call.method), raised=True))
        finally:
            self._crew.end(self, tasks, time.monotonic() - start)

    def _next_tasks(self) -> list[Task]:
        with self._lock, self._crew.lock:
            waiting = [one for one in self._waiting if not one.future.cancelled()]
            if len(waiting) < 2:
                self._served.clear()
            allowed = [one for one in waiting if self._crew.may_run(self, one)]
            tasks = sorted(allowed, key=lambda one: self._served[one.address])[:1]  # the first of those that are alike
            self._served.update(one.address for one in tasks)
            if tasks and _in_batches(tasks[0]):
                alike = self._alike(tasks[0])
                tasks = [one for one in allowed if _in_batches(one) and self._alike(one) == alike][:_BATCH]
                self._crew.observe_batch(len(tasks))
            self._waiting = [one for one in waiting if one not in tasks]
            if tasks:
                self._crew.begin(self, tasks)
        return tasks

    def _alike(self, task: Task) -> tuple[bool, bool, int]:
        """What sentences of one batch have in common: whether they take long, whether their time is limited, and about
        their length, to which the others are padded."""
        return self._crew.is_long(task), task.call.cpu_limit is None, max(task.kind[2], _SHORT)

    def _run(self, tasks: Sequence[Task]) -> None:
        """Run tasks in the process and finish them. BrokenExecutor if the process died."""
        tasks = [one for one in tasks if not one.future.cancelled()]
        if not tasks:
            return
        try:
            packed = self._submit(pickle.dumps([one.call for one in tasks]), tasks)
            results = [pickle.loads(one) for one in pickle.loads(packed)]
        except BrokenExecutor:
            raise
        except Exception as error:  # what cannot be pickled
            results = [Result(error, raised=True)] * len(tasks)
        if len(tasks) > 1 and any(isinstance(each.value, CpuTimeError) for each in results):
            for one in tasks:  # alone: one that takes too long ends no other
                self._run([one])
            return
        for one, result in zip(tasks, results, strict=True):
            _finish(one, result)

    def _submit(self, packed: bytes, tasks: Sequence[Task]) -> bytes:
        """Return the packed results, and cancel the work once nobody waits for it."""
        try:
            executor, end = self._running_executor(), None
            self._shared.value = GO_ON
            future = executor.submit(worker.run, packed)
            while True:
                with suppress(TimeoutError):
                    return future.result(_STEP)
                if all(one.future.cancelled() for one in tasks):
                    self._shared.value = CANCEL
                    end = end or time.monotonic() + _GRACE
                    if time.monotonic() > end:
                        self.process.kill()
        except RuntimeError as error:  # BrokenExecutor, or the executor is shut down
            with self._lock:
                self._end()
            raise BrokenExecutor(str(error)) from None

    def _running_executor(self) -> ProcessPoolExecutor:
        """The executor, with its process started and warmed."""
        with self._lock:
            if self._closed:
                raise BrokenExecutor("closed")
            if self._executor is not None and self.process is not None and not self.process.is_alive():
                self._end()  # it died between two calls, and neither had to do with that
            if self._executor is not None:
                return self._executor
            context = multiprocessing.get_context("forkserver" if can_fork() else "spawn")
            if can_fork():
                context.set_forkserver_preload(["serving.runners.worker_template"])
            self._shared = context.RawValue("b", GO_ON)
            self._executor = executor = ProcessPoolExecutor(1, context, worker.start, (self._shared,))
        with _on_path():
            started = executor.submit(os.getpid).result()
        self.process = next((one for one in multiprocessing.active_children() if one.pid == started), None)
        if self.process is None:
            raise BrokenExecutor("the process ended at once")
        for request in self._warmed:
            executor.submit(worker.run, pickle.dumps([Call("warm", request)]))  # the next request shows an error
        return executor

    def _end(self) -> None:
        """End the executor and its process; the caller has the lock."""
        if self._executor is not None:
            self._shared.value = EXIT  # for a process that is no child of the fork server any more
            if self.process is not None:
                self.process.kill()
            self._executor.shutdown(wait=self._closed)  # waits for a thread that ends with the process
            self._executor, self.process = None, None


def _reads_folders(task: Task) -> bool:
    """Whether a call reads what others put into a folder, which may have killed its process: it is not repeated."""
    subject = task.call.subject
    model = subject if isinstance(subject, ModelSpec) else subject.model
    return isinstance(model, NoModel) or bool(model.affinity)


def _in_batches(task: Task) -> bool:
    return task.call.method == "outline" and task.call.subject.in_batches


def _finish(task: Task, result: Result) -> None:
    if task.timer is not None:
        task.timer.add(result.cpu_seconds)
    with suppress(InvalidStateError):  # cancelled: nobody waits
        if result.raised:
            task.future.set_exception(result.value)
        else:
            task.future.set_result(result.value)


@contextmanager
def _on_path() -> Iterator[None]:
    """Have the fork server, which starts with the first process and from the environment alone, find this package."""
    with _starting:
        before = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_ROOT), before]))
        try:
            yield
        finally:
            del os.environ["PYTHONPATH"]
            if before is not None:
                os.environ["PYTHONPATH"] = before

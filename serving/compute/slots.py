"""Compute slots: a bounded number of computations at once, and a bounded queue for the others, shared fairly.

The next job is of the address that was computed for least of late, of its window for which that is so, of the kind that
takes least time, and then the first that came. One address never has all slots, nor all places of the queue.

A job stays alive as long as a page polls it, which it does several times a second. Once nobody polls it for `LEASE`
seconds, the job leaves the queue, or ends between two of its steps. A page that reruns finds its job by the key.

Singletons of a process are here too, created on first use and shared by all sessions. They are not in Streamlit's
caches, which any session can clear for everyone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from serving.compute.turns import NOBODY, Client, Spent, Usual, turns
from viz_core.runtime.hooks import CpuTimer, interruptible

if TYPE_CHECKING:
    from serving.metrics import Metrics

Clock = Callable[[], float]
LEASE = 5.0  # seconds for which a job stays alive after a poll


class BusyError(Exception):
    """The queue is full."""


class OwnBusyError(BusyError):
    """The queue has room, but not for more of this address."""


class OutOfTimeError(Exception):
    """The work exceeded its time limit."""


class AbandonedError(Exception):
    """Nobody waits for this job any more."""


class Job:
    """One computation: its state and its result."""

    def __init__(
        self,
        slots: Slots,
        kind: str,
        key: Hashable,
        work: Callable[[], Any],
        now: float,
        client: Client,
        cpu_limit: float | None,
    ) -> None:
        self.kind = kind
        self.cpu_limit = cpu_limit
        self.cpu_seconds = 0.0  # once it is over
        self.key = key
        self.client = client
        self.is_first = True  # of its address, when it came
        self._slots = slots
        self._work: Callable[[], Any] | None = work
        self._submitted = self._polled = now
        self._started: float | None = None
        self._finished = threading.Event()
        self.timer: CpuTimer | None = None  # while it runs
        self._value: Any = None
        self._error: BaseException | None = None

    @property
    def place(self) -> int:
        """Place in the queue, from 1; 0 once the job runs or is over."""
        return self._slots.place(self)

    @property
    def waits_for_own(self) -> bool:
        """Whether other windows of its address hold all slots that they may have."""
        return self._slots.waits_for_own(self)

    @property
    def seconds(self) -> float:
        """Seconds since the work started."""
        return 0.0 if self._started is None else self._slots.clock() - self._started

    def wait(self, seconds: float | None = None) -> bool:
        """Poll the job for at most `seconds`; return whether it is over."""
        self._polled = self._slots.clock()
        return self._finished.wait(seconds)

    def result(self) -> Any:
        """Return what the work returned, or raise what it raised.

        OutOfTimeError if it exceeded the time limit. AbandonedError if nobody polled it for `LEASE` seconds.
        CpuTimeError if it exceeded its processor time.
        """
        self._finished.wait()
        if self._error is not None:
            raise self._error
        return self._value

    def check(self) -> None:
        """Raise an error in the working thread where the time limit is exceeded or nobody polls the job."""
        now = self._slots.clock()
        if self._started is not None and now - self._started > self._slots.max_seconds:
            raise OutOfTimeError(self.kind)
        if self.abandoned(now):
            raise AbandonedError(self.kind)
        if self.timer is not None:
            self.timer.check()

    def abandoned(self, now: float) -> bool:
        return now - self._polled > LEASE

    def run(self) -> None:
        """Do the work in the thread of a slot."""
        work, self._work = self._work, None
        start = self._started = self._slots.clock()
        outcome = "done"
        self.timer = CpuTimer(self.cpu_limit)
        try:
            with working_for(self.client, self.timer), interruptible(self.check):
                self._value = work() if work is not None else None
        except BaseException as error:  # raised by `result`; the slot goes on
            self._error, outcome = error, type(error).__name__
        finally:
            self.cpu_seconds = self.timer.seconds
            observer = self._slots.observer
            observer.observe_wait(self.kind, start - self._submitted, self.is_first)
            observer.observe_work(self.kind, self.seconds, outcome)

    def end(self, error: BaseException | None = None) -> None:
        """Mark the job as over, and wake those who wait for it."""
        self._error = self._error or error
        self._work = None
        self._finished.set()


class Slots:
    """At most `count` threads that run jobs, a fair share for each address, and a queue of at most `queue` jobs.

    One address has at most three quarters of the slots and half of the queue, so that a newcomer finds room. Threads
    are reused: each new one would start its own pool for matrix products.
    """

    def __init__(
        self, count: int, queue: int, max_seconds: float, observer: Metrics, clock: Clock = time.monotonic
    ) -> None:
        self.max_seconds = max_seconds
        self.observer = observer
        self.clock = clock
        self._count, self._most = count, queue
        self._share, self._own_most = count - count // 4, queue - queue // 2
        self._queue: list[Job] = []
        self._known: dict[Hashable, Job] = {}  # submitted and not over
        self._running: list[Job] = []
        self._usual, self._spent = Usual(), Spent()
        self._threads, self._open = 0, True
        self._lock = threading.RLock()
        self._submitted, self._done = threading.Condition(self._lock), threading.Condition(self._lock)

    def submit(
        self,
        kind: str,
        work: Callable[[], Any],
        key: Hashable = None,
        client: Client = NOBODY,
        cpu_limit: float | None = None,
    ) -> Job:
        """Submit a job; while one with the same key is not over, return that one.

        OwnBusyError if this address has its share of the queue. BusyError if the queue is full, or the slots are
        closed.

        Args:
            cpu_limit: processor seconds that it may take; None for any number.
        """
        with self._lock:
            now = self.clock()
            known = self._known.get(key) if key is not None else None
            if known is not None and not known.abandoned(now):
                known.wait(0)
                return known
            self._drop_abandoned(now)
            if not self._open or len(self._running) + len(self._queue) >= self._count + self._most:
                self.observer.count_refusal(kind)
                raise BusyError(kind)
            own = [sum(one.client.address == client.address for one in each) for each in (self._queue, self._running)]
            if client.address is not None and self._most and own[0] >= self._own_most:
                self.observer.count_refusal(kind)
                raise OwnBusyError(kind)
            job = Job(self, kind, key, work, now, client, cpu_limit)
            job.is_first = not any(own)
            if key is not None:
                self._known[key] = job
            self._queue.append(job)
            if len(self._running) + len(self._queue) > self._threads and self._threads < self._count:
                self._threads += 1
                threading.Thread(target=self._serve, name=f"slot-{self._threads}", daemon=True).start()
            self._submitted.notify()  # one thread is enough: the others would compete with the pages
            return job

    def place(self, job: Job) -> int:
        with self._lock:
            now = self.clock()
            alive = [other for other in self._turns() if other is job or not other.abandoned(now)]
            if job not in alive:
                return 0
            idle = max(0, self._threads - len(self._running))
            return max(0 if self._may_start(job) else 1, alive.index(job) + 1 - idle)

    def waits_for_own(self, job: Job) -> bool:
        with self._lock:
            return job in self._queue and not self._may_start(job)

    def count(self) -> tuple[int, int]:
        """Return how many jobs run, and how many wait."""
        with self._lock:
            self._drop_abandoned(self.clock())
            return len(self._running), len(self._queue)

    def close(self, seconds: float) -> bool:
        """Refuse new jobs, drop waiting ones, and wait for running ones; return whether all have ended."""
        with self._lock:
            self._open = False
            for job in self._queue:
                self._forget(job, BusyError(job.kind))
            self._queue.clear()
            self._submitted.notify_all()
            return self._done.wait_for(lambda: not self._running, timeout=seconds)

    def _turns(self) -> Iterator[Job]:
        now = self.clock()
        running = [(job.client, max(job.seconds, self._expected(job))) for job in self._running]
        waiting = [(job, job.client, self._expected(job)) for job in self._queue]
        return turns(waiting, running, lambda who: self._spent.of(who, now))

    def _expected(self, job: Job) -> float:
        return self._usual.of(job.kind) or 0.0

    def _may_start(self, job: Job) -> bool:
        """Whether the job's address has fewer slots than its share; work of no address has no share."""
        address = job.client.address
        return address is None or sum(other.client.address == address for other in self._running) < self._share

    def _next(self) -> Job | None:
        return next((job for job in self._turns() if self._may_start(job)), None)

    def _serve(self) -> None:
        while True:
            with self._lock:
                while (job := self._next()) is None and self._open:
                    self._submitted.wait()
                if job is None:
                    self._threads -= 1
                    return
                self._queue.remove(job)
                if job.abandoned(self.clock()):
                    self._forget(job, AbandonedError(job.kind))
                    continue
                self._running.append(job)
            try:
                job.run()
            finally:
                with self._lock:
                    self._running.remove(job)
                    self._usual.add(job.kind, job.seconds)
                    self._spent.add(job.client, job.seconds, self.clock())
                    self._forget(job)
                    self._done.notify_all()
                del job  # an idle thread must not hold the last visitor's data

    def _drop_abandoned(self, now: float) -> None:
        for job in [job for job in self._queue if job.abandoned(now)]:
            self._queue.remove(job)
            self._forget(job, AbandonedError(job.kind))

    def _forget(self, job: Job, error: BaseException | None = None) -> None:
        if self._known.get(job.key) is job:
            del self._known[job.key]
        job.end(error)


def in_slot() -> bool:
    """Return whether this code runs in a slot. Nested computations then run at once."""
    return _in_slot.get() is not None


def client_in_slot() -> Client:
    """Return whose job runs here; nobody's outside of a slot."""
    found = _in_slot.get()
    return NOBODY if found is None else found[0]


def timer_in_slot() -> CpuTimer | None:
    """Return what counts the processor seconds of the job that runs here; None outside of a slot."""
    found = _in_slot.get()
    return None if found is None else found[1]


@contextmanager
def working_for(client: Client, timer: CpuTimer | None = None) -> Iterator[None]:
    """Have this code count as running in a slot, for this client."""
    token = _in_slot.set((client, timer))
    try:
        yield
    finally:
        _in_slot.reset(token)


_in_slot: ContextVar[tuple[Client, CpuTimer | None] | None] = ContextVar("in_slot", default=None)


Instance = TypeVar("Instance")

_instances: dict[str, Any] = {}


def singleton(create: Callable[[], Instance]) -> Callable[[], Instance]:
    """Decorate a factory so that it runs once; every call returns the same instance."""
    name, creating = f"{create.__module__}.{create.__qualname__}", threading.RLock()

    @wraps(create)
    def get() -> Instance:
        if name not in _instances:
            with creating:
                if name not in _instances:
                    _instances[name] = create()
        return _instances[name]  # type: ignore[no-any-return]

    return get


def existing(get: Callable[[], Instance]) -> Instance | None:
    """Return the instance that a decorated factory has created, or None if it was never called."""
    return _instances.get(f"{get.__module__}.{get.__qualname__}")


def reset_singletons() -> None:
    """Drop all instances, so that the next call creates new ones. For tests."""
    _instances.clear()

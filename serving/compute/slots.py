"""Compute slots: so many computations at once, a queue for the others, and none for a visitor who has left.

A job is wanted as long as somebody looks at it: a page that waits touches it several times a second. A visitor who
closes the window touches nothing any more, so seconds later the job leaves the queue, or ends between two of its
steps. A page that is drawn anew finds its job, and its place in the queue, by the key.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from typing import Any, Protocol

from viz_core.runtime.interruption import interruptible

Clock = Callable[[], float]
LEASE = 5.0  # seconds for which a job is wanted after someone looked at it


class BusyError(Exception):
    """So many wait already that one more would wait in vain."""


class OutOfTimeError(Exception):
    """The work took longer than it may."""


class AbandonedError(Exception):
    """Nobody waits for this any more."""


class Observer(Protocol):
    """Who wants to know how it goes."""

    def waited(self, kind: str, seconds: float) -> None: ...
    def worked(self, kind: str, seconds: float, outcome: str) -> None: ...
    def refused(self, kind: str) -> None: ...


class Job:
    """One computation: where it stands, and what came of it."""

    def __init__(self, slots: Slots, kind: str, key: Hashable, work: Callable[[], Any], now: float) -> None:
        self.kind = kind
        self.key = key
        self._slots = slots
        self._work: Callable[[], Any] | None = work
        self._asked = self._seen = now
        self._started: float | None = None
        self._finished = threading.Event()
        self._value: Any = None
        self._error: BaseException | None = None

    @property
    def place(self) -> int:
        """How many-eth in the queue, from 1; 0 once it runs or is over."""
        return self._slots.place(self)

    @property
    def seconds(self) -> float:
        """For how long it has been at work."""
        return 0.0 if self._started is None else self._slots.clock() - self._started

    def wait(self, seconds: float | None = None) -> bool:
        """Look at it for so long; whether it is over."""
        self._seen = self._slots.clock()
        return self._finished.wait(seconds)

    def result(self) -> Any:
        """What the work returned or raised.

        Raises:
            OutOfTimeError: if it took longer than it may.
            AbandonedError: if nobody looked at it for a while.
        """
        self._finished.wait()
        if self._error is not None:
            raise self._error
        return self._value

    def check(self) -> None:
        """End the work, from within, where it takes too long or nobody waits for it."""
        now = self._slots.clock()
        if self._started is not None and now - self._started > self._slots.max_seconds:
            raise OutOfTimeError(self.kind)
        if self.abandoned(now):
            raise AbandonedError(self.kind)

    def abandoned(self, now: float) -> bool:
        return now - self._seen > LEASE

    def run(self) -> None:
        """Do the work, in the thread of a slot."""
        work, self._work = self._work, None
        begun = self._started = self._slots.clock()
        outcome = "done"
        token = _inside.set(True)
        try:
            with interruptible(self.check):
                self._value = work() if work is not None else None
        except BaseException as error:  # whoever waits gets it, and the slot goes on
            self._error, outcome = error, type(error).__name__
        finally:
            _inside.reset(token)
            observer = self._slots.observer
            observer.waited(self.kind, begun - self._asked)
            observer.worked(self.kind, self._slots.clock() - begun, outcome)

    def end(self, error: BaseException | None = None) -> None:
        """Tell those who wait that it is over."""
        self._error = self._error or error
        self._work = None
        self._finished.set()


class Slots:
    """Threads that work, at most `count` of them, on what is asked first, and a queue of at most `queue` jobs.

    The same threads serve all the time: a new one would start a pool of its own for its matrix products.
    """

    def __init__(
        self, count: int, queue: int, max_seconds: float, observer: Observer, clock: Clock = time.monotonic
    ) -> None:
        self.max_seconds = max_seconds
        self.observer = observer
        self.clock = clock
        self._count, self._most = count, queue
        self._queue: deque[Job] = deque()
        self._known: dict[Hashable, Job] = {}  # asked for and not over
        self._running = 0
        self._threads = 0
        self._open = True
        self._lock = threading.RLock()
        self._asked, self._done = threading.Condition(self._lock), threading.Condition(self._lock)

    def submit(self, kind: str, work: Callable[[], Any], key: Hashable = None) -> Job:
        """Ask for a computation; one with the same key that is not over yet serves both.

        Raises:
            BusyError: if the queue is full, or the slots are closed.
        """
        with self._lock:
            now = self.clock()
            known = self._known.get(key) if key is not None else None
            if known is not None and not known.abandoned(now):
                known.wait(0)
                return known
            self._drop_abandoned(now)
            if not self._open or self._running + len(self._queue) >= self._count + self._most:
                self.observer.refused(kind)
                raise BusyError(kind)
            job = Job(self, kind, key, work, now)
            if key is not None:
                self._known[key] = job
            self._queue.append(job)
            if self._running + len(self._queue) > self._threads and self._threads < self._count:
                self._threads += 1
                threading.Thread(target=self._serve, name=f"slot-{self._threads}", daemon=True).start()
            self._asked.notify()  # one slot is enough: each that wakes for nothing takes turns with the pages
            return job

    def place(self, job: Job) -> int:
        with self._lock:
            now = self.clock()
            wanted = [other for other in self._queue if other is job or not other.abandoned(now)]
            if job not in wanted:
                return 0
            return max(0, wanted.index(job) + 1 - max(0, self._threads - self._running))

    def count(self) -> tuple[int, int]:
        """How many run, and how many wait."""
        with self._lock:
            self._drop_abandoned(self.clock())
            return self._running, len(self._queue)

    def close(self, seconds: float) -> bool:
        """Take nothing more, let those who wait go, and wait for those that run; whether all came to an end."""
        with self._lock:
            self._open = False
            for job in self._queue:
                self._forget(job, BusyError(job.kind))
            self._queue.clear()
            self._asked.notify_all()
            return self._done.wait_for(lambda: self._running == 0, timeout=seconds)

    def _serve(self) -> None:
        while True:
            with self._lock:
                self._asked.wait_for(lambda: bool(self._queue) or not self._open)
                if not self._queue:
                    self._threads -= 1
                    return
                job = self._queue.popleft()
                if job.abandoned(self.clock()):
                    self._forget(job, AbandonedError(job.kind))
                    continue
                self._running += 1
            try:
                job.run()
            finally:
                with self._lock:
                    self._running -= 1
                    self._forget(job)
                    self._done.notify_all()
                del job  # an idle slot keeps nothing of its last visitor

    def _drop_abandoned(self, now: float) -> None:
        for job in [job for job in self._queue if job.abandoned(now)]:
            self._queue.remove(job)
            self._forget(job, AbandonedError(job.kind))

    def _forget(self, job: Job, error: BaseException | None = None) -> None:
        if self._known.get(job.key) is job:
            del self._known[job.key]
        job.end(error)


def inside() -> bool:
    """Whether this is the work of a slot already: what it asks for in turn, it does itself."""
    return _inside.get()


_inside: ContextVar[bool] = ContextVar("inside", default=False)

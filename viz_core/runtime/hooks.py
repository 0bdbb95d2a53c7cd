"""What the program around a long computation may do: show its result, or cancel it between two steps."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_viewers: list[Callable[[Any], Any]] = []


def set_viewer(viewer: Callable[[Any], Any]) -> None:
    """Set the function that `show` calls."""
    _viewers[:] = [viewer]


def show(run: Any) -> Any:
    """Return the attention view of a run."""
    return _viewers[0](run)


Check = Callable[[], None]

_check: ContextVar[Check | None] = ContextVar("check", default=None)


@contextmanager
def interruptible(check: Check) -> Iterator[None]:
    """Have computations of this thread in this block call `check` between steps; an error it raises ends them."""
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)


def may_end() -> None:
    """Call the check of the enclosing `interruptible` block, if any: between tokens, layers, blocks of a map."""
    check = _check.get()
    if check is not None:
        check()


class CpuTimeError(Exception):
    """A computation exceeded its processor time."""


class CpuTimer:
    """Counts the processor seconds of a computation, and ends it at a limit.

    Args:
        limit: seconds; None for any number.
        clock: processor seconds of this thread, or of this process. The clock of a thread is read in that thread alone.
    """

    def __init__(self, limit: float | None, clock: Callable[[], float] = time.thread_time) -> None:
        self._limit, self._clock = limit, clock
        self._begun, self._remote = clock(), 0.0
        self._latest = 0.0
        self._thread = threading.get_ident()

    @property
    def seconds(self) -> float:
        """Seconds until now, with those of other processes."""
        if self._clock is not time.thread_time or threading.get_ident() == self._thread:
            self._latest = self._clock() - self._begun
        return self._latest + self._remote

    @property
    def left(self) -> float | None:
        """Seconds until the limit; None without one."""
        return None if self._limit is None else max(0.0, self._limit - self.seconds)

    def add(self, seconds: float) -> None:
        """Count what another process needed for the computation."""
        self._remote += seconds

    def check(self) -> None:
        """Raise CpuTimeError beyond the limit."""
        if self._limit is not None and self.seconds > self._limit:
            raise CpuTimeError

"""A way for long work to be ended from outside, between two of its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Check = Callable[[], None]

_check: ContextVar[Check | None] = ContextVar("check", default=None)


@contextmanager
def interruptible(check: Check) -> Iterator[None]:
    """Work of this thread in this block calls `check` between its steps; what that raises ends it."""
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)


def may_end() -> None:
    """A place where work may be ended: between two words, two layers, two blocks of a map. Costs next to nothing."""
    check = _check.get()
    if check is not None:
        check()

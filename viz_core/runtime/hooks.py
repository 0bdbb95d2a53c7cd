"""What the program around a long computation may do: show its result, or cancel it between two steps."""

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

"""A context variable with another value for one block of code."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Value = TypeVar("Value")


@contextmanager
def set_in_block(variable: ContextVar[Value], value: Value) -> Iterator[None]:
    """Set a context variable in this block, for this thread or task alone."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)

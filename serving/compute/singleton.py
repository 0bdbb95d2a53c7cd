"""Process-wide singletons, created on first use and shared by all sessions.

They are not in Streamlit's caches, which any session can clear for everyone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

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

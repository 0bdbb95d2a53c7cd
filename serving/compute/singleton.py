"""What there is one of in a process: made when first asked for, and shared by all who ask.

Not in Streamlit's caches: any visitor's window can ask Streamlit to empty them, for everybody.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Made = TypeVar("Made")

_made: dict[str, Any] = {}


def once(make: Callable[[], Made]) -> Callable[[], Made]:
    """A function that calls `make` the first time, and returns what came of it ever after."""
    name, making = f"{make.__module__}.{make.__qualname__}", threading.RLock()

    @wraps(make)
    def get() -> Made:
        if name not in _made:
            with making:
                if name not in _made:
                    _made[name] = make()
        return _made[name]  # type: ignore[no-any-return]

    return get


def made(get: Callable[[], Made]) -> Made | None:
    """What such a function has made; None where nobody has asked for it yet."""
    return _made.get(f"{get.__module__}.{get.__qualname__}")


def forget() -> None:
    """Make everything anew when it is asked for again: for tests, and for nobody else."""
    _made.clear()

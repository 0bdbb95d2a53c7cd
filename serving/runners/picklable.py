"""Functions that can be sent to another process by name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import reduce
from typing import Any


def check_picklable(function: Callable[..., Any]) -> None:
    """Check that another process can import a function by its module and name.

    Raises:
        ValueError: if it cannot, as for a lambda, a closure or a partial function.
    """
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    found: Any = None
    if isinstance(module, str) and isinstance(name, str) and module != "__main__":
        found = reduce(lambda place, part: getattr(place, part, None), name.split("."), sys.modules.get(module))
    if found is not function:
        raise ValueError(f"function: expected one at the top level of a module, got {name or function!r}")

"""Questions about models and their runs: plain functions, so that a type checker knows their arguments and answers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import reduce
from typing import Any


def check_question(question: Callable[..., Any]) -> None:
    """Another machine finds a question by the name of its module and its own: both must lead to it.

    Raises:
        ValueError: if they do not, as those of a lambda, a closure or a partial function.
    """
    module, name = getattr(question, "__module__", None), getattr(question, "__qualname__", None)
    found: Any = None
    if isinstance(module, str) and isinstance(name, str) and module != "__main__":
        found = reduce(lambda place, part: getattr(place, part, None), name.split("."), sys.modules.get(module))
    if found is not question:
        raise ValueError(f"question: expected a function at the top level of a module, got {name or question!r}")

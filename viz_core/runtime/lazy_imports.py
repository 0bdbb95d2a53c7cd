"""A package whose names are imported when they are first used (PEP 562), so that importing it costs nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def names_on_use(package: str, places: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """What a package calls `__getattr__` and `__dir__`, given the module in which each of its names lies."""

    def get(name: str) -> Any:
        if name not in places:
            names = ", ".join(sorted(places))
            raise AttributeError(f"module {package!r} has no attribute {name!r}; it has {names}")
        return getattr(import_module(places[name]), name)

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *places})

    return get, names

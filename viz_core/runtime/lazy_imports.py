"""Import the names of a package when they are first used (PEP 562), so that importing it costs nothing."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package, from the module of each of its names."""

    def get(name: str) -> Any:
        if name not in modules:
            names = ", ".join(sorted(modules))
            raise AttributeError(f"module {package!r} has no attribute {name!r}; it has {names}")
        return getattr(import_module(modules[name]), name)

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return get, names

"""Entries of registers, found in a package's modules, and names imported when they are first used (PEP 562)."""

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from operator import attrgetter
from typing import Any, TypeVar

Entry = TypeVar("Entry")


def find_entries(package: str, kind: type[Entry]) -> tuple[Entry, ...]:
    """Every instance of `kind` that is a module-level name in the package's modules, sorted by its `order`.

    Args:
        kind: has the attributes `name` and `order`.
    """
    return _find(package, lambda value: isinstance(value, kind))


def find_classes(package: str, base: type[Entry]) -> tuple[type[Entry], ...]:
    """Every class that derives from `base` and is not abstract, found and sorted likewise."""
    return _find(
        package, lambda value: inspect.isclass(value) and issubclass(value, base) and not inspect.isabstract(value)
    )


def _find(package: str, is_entry: Callable[[Any], bool]) -> tuple[Any, ...]:
    modules = pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}.")
    values = (value for module in modules for value in vars(importlib.import_module(module.name)).values())
    found = {id(value): value for value in values if is_entry(value)}  # each once, whoever imports it
    entries = sorted(found.values(), key=attrgetter("order"))
    for what in ("name", "order"):
        named = [getattr(entry, what) for entry in entries]
        if repeated := {str(each) for each in named if named.count(each) > 1}:
            raise ValueError(f"{what}: expected each once in {package}, got {', '.join(sorted(repeated))} twice")
    return tuple(entries)


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

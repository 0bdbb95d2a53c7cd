"""Registers that fill themselves: an entry is a constant of a module, and a new module is found by itself."""

import importlib
import pkgutil
from operator import attrgetter
from typing import TypeVar

Entry = TypeVar("Entry")


def find_entries(package: str, kind: type[Entry]) -> tuple[Entry, ...]:
    """Every instance of `kind` that is a module-level name in the package's modules, sorted by its `order`.

    Args:
        kind: has the attributes `name` and `order`.
    """
    modules = pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}.")
    values = (value for module in modules for value in vars(importlib.import_module(module.name)).values())
    found = {id(value): value for value in values if isinstance(value, kind)}  # each once, whoever imports it
    entries = sorted(found.values(), key=attrgetter("order"))
    for what in ("name", "order"):
        named = [getattr(entry, what) for entry in entries]
        if repeated := {str(each) for each in named if named.count(each) > 1}:
            raise ValueError(f"{what}: expected each once in {package}, got {', '.join(sorted(repeated))} twice")
    return tuple(entries)

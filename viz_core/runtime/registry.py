"""Registers that fill themselves: an entry is a constant of a module, and a new module is found by itself."""

import importlib
import pkgutil
from collections.abc import Iterator
from operator import attrgetter
from typing import TypeVar

Entry = TypeVar("Entry")


def find_entries(package: str, kind: type[Entry]) -> tuple[Entry, ...]:
    """Every instance of `kind` that is a module-level name in the package's modules, sorted by its `order`.

    Args:
        kind: has the attributes `name` and `order`.
    """
    entries = sorted({id(entry): entry for entry in _entries(package, kind)}.values(), key=attrgetter("order"))
    for what in ("name", "order"):
        values = [getattr(entry, what) for entry in entries]
        if repeated := {str(value) for value in values if values.count(value) > 1}:
            raise ValueError(f"{what}: expected each once in {package}, got {', '.join(sorted(repeated))} twice")
    return tuple(entries)


def _entries(package: str, kind: type[Entry]) -> Iterator[Entry]:
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
        yield from (value for value in vars(importlib.import_module(module.name)).values() if isinstance(value, kind))

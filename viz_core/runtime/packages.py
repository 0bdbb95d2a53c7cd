"""Installed packages: which extras are missing, and which private names of other libraries."""

from collections.abc import Iterable
from dataclasses import dataclass, is_dataclass
from dis import get_instructions
from functools import lru_cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any

from packaging.requirements import Requirement

_INSTALLED_AS = "attention-atlas"


@lru_cache(maxsize=16)
def require(extra: str, *names: str) -> None:
    """Raise ImportError unless the packages of an extra are installed in versions that it accepts.

    A checkout that was not installed has no list of requirements: there, nothing is checked. Without names all packages
    of the extra are.
    """
    try:
        requirements = [Requirement(line) for line in requires(_INSTALLED_AS) or []]
    except PackageNotFoundError:
        return
    of_extra = [each for each in requirements if each.marker is not None and each.marker.evaluate({"extra": extra})]
    installed = {each: _version(each.name) for each in of_extra if not names or each.name in names}
    unmet = [
        f"{each.name}{each.specifier} ({found or 'none'} is installed)"
        for each, found in installed.items()
        if found is None or not each.specifier.contains(found, prereleases=True)
    ]
    if unmet:
        raise ImportError(f"expected {', '.join(unmet)}: pip install '{_INSTALLED_AS}[{extra}]'")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


@dataclass(frozen=True)
class PrivateName:
    """A name that its library does not promise to keep."""

    path: str  # "package.module:Class.attribute" or "package.module:function"
    feature: str  # what uses it, the name of one of our modules
    without: str  # what stops working where the name is gone, a sentence


def missing(names: Iterable[PrivateName]) -> list[PrivateName]:
    """The names that the installed libraries lack."""
    return [name for name in names if not exists(name.path)]


def exists(path: str) -> bool:
    """Whether "package.module:Class.attribute" can be used: a class attribute, a field, or set in `__init__`."""
    module, _, attributes = path.partition(":")
    try:
        owner = import_module(module)
    except ImportError:
        return False
    *owners, last = attributes.split(".")
    for name in owners:
        owner = getattr(owner, name, None)  # type: ignore[assignment]
    return hasattr(owner, last) or _is_set_on_instances(owner, last)


def _is_set_on_instances(owner: Any, name: str) -> bool:
    if is_dataclass(owner) and name in owner.__dataclass_fields__:
        return True
    code = getattr(getattr(owner, "__init__", None), "__code__", None)
    return code is not None and any(
        step.opname == "STORE_ATTR" and step.argval == name for step in get_instructions(code)
    )

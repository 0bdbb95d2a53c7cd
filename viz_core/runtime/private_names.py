"""Private names of other libraries: which of them the installed version lacks, and what stops working without each."""

from collections.abc import Iterable
from dataclasses import dataclass, is_dataclass
from dis import get_instructions
from importlib import import_module
from typing import Any


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

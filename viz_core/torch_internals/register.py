"""The private names of torch that the library uses: each registers itself, with what needs it, where it is imported."""

import sys
import warnings
from collections.abc import Callable
from functools import cache, partial
from operator import attrgetter
from typing import Any

import torch

from viz_core.runtime import packages as private_names
from viz_core.runtime.packages import PrivateName

_NAMES: dict[str, PrivateName] = {}


def declare(path: str, purpose: str) -> PrivateName:
    """Register a private name, "module:attribute", with what needs it: "recording within torch.func"."""
    return _NAMES.setdefault(path, PrivateName(path, purpose, f"{purpose} does not work"))


def private(path: str, purpose: str, default: Callable[..., Any] | None = None) -> Any:
    """Register a private name and return its object; where torch has none, the default.

    Without a default, the stand-in raises RuntimeError when it is called.
    """
    name = declare(path, purpose)
    module, attribute = path.split(":")
    if _is_loaded(name) and private_names.exists(path):
        return attrgetter(attribute)(sys.modules[module])
    return default or partial(_raise_missing, name)


def missing() -> list[PrivateName]:
    """Return the private names that this version of torch lacks; not of modules that are not imported yet."""
    return private_names.missing(filter(_is_loaded, _NAMES.values()))


@cache
def warn_missing() -> None:
    """Warn of each missing name, once."""
    for name in missing():
        warnings.warn(_message(name), RuntimeWarning, stacklevel=3)


def _is_loaded(name: PrivateName) -> bool:
    return name.path.split(":")[0] in sys.modules


def _message(name: PrivateName) -> str:
    here = f"torch {torch.__version__} has no {name.path.replace(':', '.')}"
    return f"{here}, so {name.without}; install torch>=2.9,<2.16"


def _raise_missing(name: PrivateName, *_args: Any, **_kwargs: Any) -> Any:
    raise RuntimeError(_message(name))

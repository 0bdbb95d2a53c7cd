"""The register of private names: what each is used for, and what no longer works without it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import torch

_PURPOSES: dict[str, str] = {}
_warned = set[bool]()  # whether the compiler was loaded when the names were tested


def declare(name: str, purpose: str) -> None:
    """Register a private name, "module:attribute", with what needs it: "recording within torch.func"."""
    _PURPOSES[name] = purpose


def private(name: str, purpose: str, default: Callable[..., Any] | None = None) -> Any:
    """Register a private name and return its object; where torch has none, the default.

    Without a default, the stand-in raises RuntimeError when it is called.
    """
    declare(name, purpose)
    found = _find(name)
    return found if found is not None else default or _stand_in(name, purpose)


def missing() -> list[tuple[str, str]]:
    """Return (name, what no longer works) for each private name that this version of torch lacks.

    Names in modules that are not imported yet (the compiler's) are not judged: importing them takes seconds.
    """
    return [(name, purpose) for name, purpose in _PURPOSES.items() if _is_loaded(name) and _find(name) is None]


def warn_missing() -> None:
    """Warn of each missing name, once; again once the compiler is loaded."""
    compiler_loaded = _is_loaded("torch._dynamo.eval_frame")
    if compiler_loaded not in _warned:
        _warned.add(compiler_loaded)
        for name, purpose in missing():
            warnings.warn(_message(name, purpose), RuntimeWarning, stacklevel=3)


def _is_loaded(name: str) -> bool:
    return name.split(":")[0] in sys.modules


def _find(name: str) -> Any:
    module, attribute = name.split(":")
    try:
        return attrgetter(attribute)(sys.modules[module])
    except (KeyError, AttributeError):
        return None


def _message(name: str, purpose: str) -> str:
    here = f"torch {torch.__version__} has no {name.replace(':', '.')}"
    return f"{here}, so {purpose} does not work; install torch>=2.13,<2.14"


def _stand_in(name: str, purpose: str) -> Callable[..., Any]:
    def raise_missing(*_args: Any, **_kwargs: Any) -> Any:
        raise RuntimeError(_message(name, purpose))

    return raise_missing

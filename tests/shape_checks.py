"""Shapes and types checked at every call, as jaxtyping's import hook does, for a fraction of what its wrapper takes.

jaxtyping's own binds arguments by `inspect.signature` at every call and checks them twice, and for a function within a
function it writes and compiles both checks anew whenever the outer one runs: half of what some tests took.
"""

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any

import jaxtyping
from jaxtyping import _decorator, _storage

Check = Callable[..., Any]

_of_others = _decorator.jaxtyped  # classes, properties and the like: of these it makes functions
_checks: dict[int, "_Checks"] = {}  # by the id of a function's code, which is its own while the code is kept


def install(modules: tuple[str, ...], typechecker: str) -> None:
    """Check every call of every function of these modules; before their first import.

    Args:
        typechecker: an expression, evaluated when a module is imported.
    """
    jaxtyping.jaxtyped = _decorator.jaxtyped = jaxtyped
    jaxtyping.install_import_hook(modules, typechecker)


@contextmanager
def unchecked() -> Iterator[None]:
    """Turn off the checks, for long training of what other tests check, or for a function's own check of shapes."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", before)


def jaxtyped(fn: Any = _decorator._sentinel, *, typechecker: Check) -> Any:
    """What the hook writes over every function."""
    return _checked(fn, typechecker) if isinstance(fn, FunctionType) else _of_others(fn, typechecker=typechecker)


def _checked(fn: FunctionType, typechecker: Check) -> Any:
    if getattr(fn, "__no_type_check__", False):
        return fn
    if id(fn.__code__) not in _checks:
        _checks[id(fn.__code__)] = _Checks(fn, typechecker)
    checks = _checks[id(fn.__code__)]

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        if jaxtyping.config.jaxtyping_disable:
            return fn(*args, **kwargs)
        _storage.push_shape_memo({})  # names of sizes hold from the arguments to the result
        try:
            checks.arguments(*args, **kwargs)
            return checks.result(fn(*args, **kwargs))
        finally:
            _storage.pop_shape_memo()

    return wrapped


class _Checks:
    """What a function's signature asks for; written when it is first called, for most of what is imported never is."""

    def __init__(self, fn: FunctionType, typechecker: Check) -> None:
        signature = inspect.signature(fn)
        resolve = functools.partial(_decorator._destring_annotation, ns=fn.__globals__)
        parameters = [one.replace(annotation=resolve(one.annotation)) for one in signature.parameters.values()]
        self._signature = signature.replace(parameters=parameters, return_annotation=Any)
        annotated = signature.return_annotation is not inspect.Signature.empty
        self._result = resolve(signature.return_annotation) if annotated else Any
        self._names = (fn.__name__, fn.__qualname__, fn.__module__)
        self._code: CodeType = fn.__code__
        self._typechecker = typechecker

    @functools.cached_property
    def arguments(self) -> Check:
        """A function with the same arguments that does nothing."""
        return self._typechecker(_decorator._make_fn_with_signature(*self._names, self._signature, output=False))

    @functools.cached_property
    def result(self) -> Check:
        """A function that returns what it is given."""

        def result(value):  # type: ignore[no-untyped-def]
            return value

        result.__annotations__ = {"return": self._result}
        result.__name__, result.__qualname__, result.__module__ = self._names
        return self._typechecker(result)

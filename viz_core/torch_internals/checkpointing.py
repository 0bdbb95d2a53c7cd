"""Activation checkpointing: what it runs a second time, for the backward pass, runs in the context of its first run."""

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from torch.utils.checkpoint import CheckpointFunction, checkpoint

from viz_core.torch_internals.register import declare

for _name in ("_checkpoint_without_reentrant_generator", "_CheckpointFrame"):
    declare(f"torch.utils.checkpoint:{_name}", "editing heads under activation checkpointing")

_REENTRANT, _OTHER = inspect.unwrap(CheckpointFunction.forward).__code__, inspect.unwrap(checkpoint).__code__


def run_again_within(context: Callable[[], AbstractContextManager[Any]]) -> None:
    """Have the checkpointed functions around this call run in this context when they run again; once each."""
    for region, name in _regions():
        first = getattr(region, name)
        if not isinstance(first, _Within):
            setattr(region, name, _Within(first, context))


class _Within:
    """A function that runs in a context."""

    def __init__(self, function: Callable[..., Any], context: Callable[[], AbstractContextManager[Any]]) -> None:
        self._function, self._context = function, context

    def __call__(self, *arguments: Any) -> Any:
        with self._context():
            return self._function(*arguments)


def _regions() -> Iterator[tuple[Any, str]]:
    """Yield the object of each checkpointed function on the stack, and the attribute with what it runs again.

    Torch offers no hook for it: `checkpoint(context_fn=...)` is the model's to set.
    """
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code is _REENTRANT:
            yield frame.f_locals["ctx"], "run_function"
        elif frame.f_code is _OTHER and (generator := frame.f_locals.get("gen")) is not None:
            region = generator.gi_frame and generator.gi_frame.f_locals.get("new_frame")
            if region:
                yield region, "recompute_fn"
        frame = frame.f_back  # type: ignore[assignment]

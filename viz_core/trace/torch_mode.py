"""Listening to plain PyTorch: a mode of this thread that sees torch's own attention and changes nothing of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from torch import Tensor

from viz_core.torch_internals.function_modes import FastPathMode, without_modes
from viz_core.trace.references import detached
from viz_core.trace.softmax_calls import SOFTMAXES, softmax_weights
from viz_core.trace.source import Direct, Source
from viz_core.trace.torch_calls import READERS, read_call
from viz_core.trace.torch_layers import LayerTracker, TrackedLayer, edits_of_call


class RecordingMode(FastPathMode):
    """Hands what torch's attention attends by to a recorder, after the call, in the threads that enter.

    Args:
        listening: whether the recorder of this thread is the one to keep calls for.
        keep: what to do with a call, and the site of its layer; None where that is not known.
        layers: tells which layer is at work: by the weights given to the attention itself (`nn.MultiheadAttention`),
            else by those that were used just before (a projection to queries and keys). Within a layer that is known
            a softmax over keys is heard too: its result is kept as it is, whole.
    """

    def __init__(
        self,
        listening: Callable[[], bool],
        keep: Callable[[Source, str | None], None],
        layers: LayerTracker | TrackedLayer,
    ) -> None:
        super().__init__()
        self._listening, self._keep, self._layers = listening, keep, layers

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """The call as it is; then, if it was attention, a word to the recorder."""
        kwargs = kwargs or {}
        if getattr(_here, "busy", False) or not self._listening():
            return func(*args, **kwargs)
        self._layers.follow((*args, *kwargs.values()))
        layer = self._layers.layer
        if func not in READERS and not (layer.whole and func in SOFTMAXES):
            return func(*args, **kwargs)
        _here.busy = True  # a call is heard once, however many modes there are
        try:
            result = func(*args, **kwargs)
        finally:
            _here.busy = False
        with without_modes():  # no mode hears what is computed for the recorder alone
            if func in READERS:
                self._keep(replace(read_call(func, args, kwargs), edits=edits_of_call.get()), layer.site)
            elif (weights := softmax_weights(result, layer.heads, args, kwargs)) is not None:
                self._keep(Direct(self.held(weights)), layer.site)
        return result

    def held(self, weights: Tensor) -> Tensor:
        """What is kept of weights that a model made."""
        return detached(weights)


_here = threading.local()  # whether this thread is within a call that is heard

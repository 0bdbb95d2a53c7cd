"""Record plain PyTorch: a mode of this thread that sees calls of torch's own attention and changes none."""

from __future__ import annotations

import threading
import warnings
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
    """Gives a recorder the source of each call of torch's attention, after the call, in the threads that enter.

    Args:
        is_active: whether this thread's recorder is the one to add calls to.
        add: adds a call, with the site of its layer or None.
        layers: knows the current layer: by the weights given to the attention itself (`nn.MultiheadAttention`), else
            by those used just before (a projection to queries and keys). Within a known layer a softmax over keys is
            recorded too: its result, whole.
    """

    def __init__(
        self,
        is_active: Callable[[], bool],
        add: Callable[[Source, str | None], None],
        layers: LayerTracker | TrackedLayer,
    ) -> None:
        super().__init__()
        self._is_active, self._add, self._layers = is_active, add, layers

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Return the result of the call, unchanged; if it was attention, add it to the recorder."""
        kwargs = kwargs or {}
        if getattr(_thread, "in_call", False) or not self._is_active():
            return func(*args, **kwargs)
        self._layers.follow((*args, *kwargs.values()))
        layer = self._layers.layer
        if layer.weighs_parts or (func not in READERS and not (layer.spans_all_keys and func in SOFTMAXES)):
            return func(*args, **kwargs)
        _thread.in_call = True  # a call is recorded once, however many modes there are
        try:
            result = func(*args, **kwargs)
        finally:
            _thread.in_call = False
        with without_modes():  # no mode sees what is computed for the recorder alone
            if func in READERS:
                self._add(replace(read_call(func, args, kwargs), edits=edits_of_call.get()), layer.site)
            elif (weights := softmax_weights(result, layer.heads, args, kwargs)) is not None:
                self._add(Direct(self.stored(weights)), layer.site)
        return result

    def warn_of_missing(self, sites: Iterable[str]) -> None:
        """Warn of the layers that ran and are not among the recorded sites."""
        missing = self._layers.describe_missing({site.partition("@")[0] for site in sites})
        if missing:
            warnings.warn(f"record: not recorded: {missing}", stacklevel=4)

    def stored(self, weights: Tensor) -> Tensor:
        """Return what is stored of weights that a model computed."""
        return detached(weights)


_thread = threading.local()  # whether this thread is within a recorded call

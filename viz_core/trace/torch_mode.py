"""Record plain PyTorch: a mode of this thread that sees calls of torch's own attention."""

import threading
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F

from viz_core.torch_internals.function_modes import FastPathMode, without_modes
from viz_core.trace.arguments import with_four_axes, with_gradient
from viz_core.trace.intervene import is_editing, refuse_edits
from viz_core.trace.outputs import edited_output, on_output, on_projected
from viz_core.trace.source import Direct, Source
from viz_core.trace.torch_calls import READERS, read_call
from viz_core.trace.torch_edits import attend_in_graph
from viz_core.trace.torch_layers import (
    PRODUCTS,
    SOFTMAXES,
    LayerTracker,
    TrackedLayer,
    edits_of_call,
    softmax_weights,
    values_of,
)
from viz_core.trace.trace import Trace, current_trace, last_site


class RecordingMode(FastPathMode):
    """Gives a recorder the source of each call of torch's attention, after the call, in the threads that enter.

    Results are the same, bit for bit, unless the recording is differentiable: then they are computed from the weights.

    Args:
        trace: what it records into, where it is this thread's recorder.
        layers: knows the current layer: by the weights given to the attention itself (`nn.MultiheadAttention`), else
            by those used just before (a projection to queries and keys). Within a known layer a softmax over keys is
            recorded too: its result, whole.
    """

    keeps_values = True  # where the recorder stores them

    def __init__(self, trace: Trace, layers: LayerTracker) -> None:
        super().__init__(closed=trace.differentiable)
        self._trace, self._layers = trace, layers
        self._values = trace.values and self.keeps_values

    def add(self, source: Source, site: str | None) -> None:
        """Add a call, with the site of its layer or None; ValueError if an edit names one of given weights."""
        if isinstance(source, Direct):
            refuse_edits(site)
        self._trace.add(source, site)

    def __torch_function__(self, func: Any, _types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        """Return the result of the call; if it was attention, add it to the recorder."""
        kwargs = kwargs or {}
        if current_trace(self._layers.layer.site) is not self._trace or getattr(_thread, "in_call", False):
            return func(*args, **kwargs)
        self._layers.follow((*args, *kwargs.values()))
        layer = self._layers.layer
        if layer.weighs_parts or (func not in READERS and not (layer.spans_all_keys and func in SOFTMAXES)):
            if self._values:
                return self._call_with_values(func, args, kwargs, layer)
            return func(*args, **kwargs)
        _thread.in_call = True  # a call is recorded once, however many modes there are
        try:
            if self._trace.differentiable and func in READERS:
                return self._call_in_graph(func, args, kwargs, layer)
            edits_before = edits_of_call.get()
            result = func(*args, **kwargs)
        finally:
            _thread.in_call = False
        with without_modes():  # no mode sees what is computed for the recorder alone
            if func in READERS:
                source = replace(read_call(func, args, kwargs, self._values), edits=edits_of_call.get())
                self.add(source, layer.site)
                if self._values and func is F.scaled_dot_product_attention and not result.is_nested:
                    output = with_four_axes(result).flatten(0, -4)
                    if source.edits is edits_before and source.values is not None:  # to be applied after this call
                        output = edited_output(output, source, source.values)
                    on_output(self._trace, output)
            elif (weights := softmax_weights(result, layer.heads, args, kwargs)) is not None:
                weights = with_gradient(weights) if self._trace.differentiable else weights.detach()
                self.add(Direct(weights), layer.site)
                _thread.pending = (layer, weights.shape, result.shape) if self._values else None
                if self._trace.differentiable:
                    return weights.reshape(result.shape)  # so that the graph passes through what is recorded
        return result

    def _call_in_graph(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], layer: TrackedLayer
    ) -> Any:
        if is_editing():
            raise ValueError("differentiable: expected no intervene block around attention of plain PyTorch")
        with without_modes():
            weights, result = attend_in_graph(func, args, kwargs)
            self.add(Direct(weights), layer.site)
        return result

    def _call_with_values(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], layer: TrackedLayer
    ) -> Any:
        """Return the result of a call that is not attention; it may multiply weights by values, or project outputs."""
        if func in _LINEAR:
            with without_modes():
                inputs, weight = args[_LINEAR[func] : _LINEAR[func] + 2]
                if layer.projection is weight or self._layers.model is None:
                    on_projected(self._trace, inputs, is_known=self._layers.model is not None)
            return func(*args, **kwargs)
        result, pending = func(*args, **kwargs), getattr(_thread, "pending", None)
        if pending is not None and func in PRODUCTS and pending[0] is layer and args[0].shape == pending[2]:
            _thread.pending = None
            with without_modes():
                values = values_of(args[1], pending[1])
                source = self._trace[last_site.get()].source
                if values is not None and isinstance(source, Direct):
                    self._trace.put(last_site.get(), replace(source, values=values.detach()))
                    on_output(self._trace, result.reshape(*pending[1][:3], -1))
        return result

    def warn_of_missing(self, sites: Iterable[str]) -> None:
        """Warn of the layers that ran and are not among the recorded sites."""
        missing = self._layers.describe_missing({site.partition("@")[0] for site in sites})
        if missing:
            warnings.warn(f"record: not recorded: {missing}", stacklevel=4)


_LINEAR = {F.linear: 0, torch.addmm: 1}  # where their inputs are, before the weight
_thread = threading.local()  # whether it is within a recorded call, and which weights await their values

"""Hooks that record layers with attention code of their own while a recording is open."""

import threading
import warnings
from collections import Counter
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from viz_core.torch_internals.compiler import must_break_graph
from viz_core.torch_internals.tensors import is_transformed
from viz_core.trace import site_of
from viz_core.trace.intervene import refuse_edits
from viz_core.trace.padding import TokenMask, allowed_keys
from viz_core.trace.source import Direct, Source
from viz_core.trace.torch_layers import LayerTracker, TrackedLayer
from viz_core.trace.torch_mode import RecordingMode
from viz_core.trace.trace import Trace, current_trace

Handles = tuple[RemovableHandle, RemovableHandle]


def add_hooks(layer: nn.Module) -> Handles:
    """Record a layer's own attention from now on, until `remove_hooks`. The handles may be copied with the layer."""
    return layer.register_forward_pre_hook(_before, with_kwargs=True), layer.register_forward_hook(
        _after, always_call=True
    )


def remove_hooks(layer: nn.Module, handles: Handles) -> None:
    """Remove the hooks; the second one after the last call that other threads are recording."""
    before, after = handles
    with _changing:
        before.remove()
        if _active_calls[id(layer)]:
            _pending_removal[id(layer)] = after
        else:
            after.remove()


class _RecordedCall(RecordingMode):
    """The attention of one call of a layer, by torch's kernel or a softmax, recorded when the call is over."""

    keeps_values = False  # what the layer does with them after is not followed

    def __init__(self, layer: nn.Module, trace: Trace, given: tuple[Any, ...]) -> None:
        self.layer, self._found, self._given = layer, list[Source](), given
        self._site = site_of(layer)
        super().__init__(trace, LayerTracker(None, TrackedLayer(self._site, layer)))

    def add(self, source: Source, site: str | None) -> None:  # noqa: ARG002
        """Keep a part of the call until it is over."""
        self._found.append(source)

    def finish(self) -> None:
        """Record whole maps; maps of several shapes are parts of one and are left out with a warning."""
        if len({source.shape for source in self._found}) != 1:
            name = type(self.layer).__name__
            warnings.warn(f"{self._site}: expected {name} to weigh all keys at once; it is not recorded", stacklevel=2)
            return
        for source in self._found:
            if isinstance(source, Direct) and source.key_tokens is None:
                source = replace(source, key_tokens=self._tokens(source))
            self._trace.add(source, self._site)

    def _tokens(self, source: Direct) -> TokenMask | None:
        """Return which keys are tokens by a mask that the layer was given, if its weights keep to it."""
        if source.weights.is_meta or is_transformed(source.weights):
            return None
        batch, _, num_queries, num_keys = source.shape
        given = [mask for mask in self._given if isinstance(mask, Tensor) and mask.dim() == 4]
        given = [mask if mask.is_floating_point() else mask.bool() for mask in given]
        for mask in (mask for mask in given if mask.shape[-1] == num_keys and len(mask) in (1, batch)):
            for allowed in (mask, ~mask) if mask.dtype == torch.bool else (None,):  # some say True where it is hidden
                tokens = allowed_keys(allowed, mask if allowed is None else None, batch, num_keys)
                if tokens is not None and bool(tokens.any(dim=-1).all()):
                    hidden = ~tokens[:, None] & (tokens[:, -num_queries:, None] if num_queries <= num_keys else True)
                    if not (source.weights.amax(dim=1) * hidden).any():
                        return tokens
        return None


_open: ContextVar[tuple[_RecordedCall, ...]] = ContextVar("open", default=())
_changing = threading.Lock()
_active_calls = Counter[int]()  # calls under way that are heard, in all threads, by the id of their layer
_pending_removal: dict[int, RemovableHandle] = {}  # to be removed with the last of them


def _before(layer: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
    refuse_edits(site_of(layer))
    trace = current_trace()
    if trace is None:
        return
    with _changing:
        if _before not in layer._forward_pre_hooks.values():
            return  # restored by another thread a moment ago
        _active_calls[id(layer)] += 1
    call = _RecordedCall(layer, trace, (*args, *kwargs.values()))
    call.__enter__()
    _open.set((*_open.get(), call))


def _after(layer: nn.Module, _inputs: Any, result: Any) -> None:
    if torch.compiler.is_compiling() and not must_break_graph():
        return
    calls = _open.get()
    if not calls or calls[-1].layer is not layer:
        return
    _open.set(calls[:-1])
    calls[-1].__exit__()
    with _changing:
        _active_calls[id(layer)] -= 1
        if not _active_calls[id(layer)]:
            del _active_calls[id(layer)]
            if id(layer) in _pending_removal:
                _pending_removal.pop(id(layer)).remove()
    if result is not None:  # it did not fail
        calls[-1].finish()

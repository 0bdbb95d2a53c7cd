"""Hooks that record layers with attention code of their own while a recording is open."""

import threading
import warnings
from collections import Counter
from contextvars import ContextVar
from typing import Any

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from viz_core.torch_internals.compiler import must_break_graph
from viz_core.trace import site_of
from viz_core.trace.intervene import refuse_edits
from viz_core.trace.record import current_trace
from viz_core.trace.source import Source
from viz_core.trace.torch_layers import TrackedLayer
from viz_core.trace.torch_mode import RecordingMode
from viz_core.trace.trace import Trace

Handles = tuple[RemovableHandle, RemovableHandle]


def add_hooks(layer: nn.Module) -> Handles:
    """Record a layer's own attention from now on, until `remove_hooks`. The handles may be copied with the layer."""
    return layer.register_forward_pre_hook(_before), layer.register_forward_hook(_after, always_call=True)


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

    def __init__(self, layer: nn.Module, trace: Trace) -> None:
        self.layer, self._found = layer, list[Source]()
        self._site = site_of(layer)
        super().__init__(
            lambda: current_trace() is trace,
            lambda source, _: self._found.append(source),
            TrackedLayer(self._site, layer),
            trace,
        )

    def finish(self) -> None:
        """Record whole maps; maps of several shapes are parts of one and are left out with a warning."""
        if len({source.shape for source in self._found}) != 1:
            name = type(self.layer).__name__
            warnings.warn(f"{self._site}: expected {name} to weigh all keys at once; it is not recorded", stacklevel=2)
            return
        for source in self._found:
            self._trace.add(source, self._site)


_open: ContextVar[tuple[_RecordedCall, ...]] = ContextVar("open", default=())
_changing = threading.Lock()
_active_calls = Counter[int]()  # calls under way that are heard, in all threads, by the id of their layer
_pending_removal: dict[int, RemovableHandle] = {}  # to be removed with the last of them


def _before(layer: nn.Module, _inputs: Any) -> None:
    refuse_edits(site_of(layer))
    trace = current_trace()
    if trace is None:
        return
    with _changing:
        if _before not in layer._forward_pre_hooks.values():
            return  # restored by another thread a moment ago
        _active_calls[id(layer)] += 1
    call = _RecordedCall(layer, trace)
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

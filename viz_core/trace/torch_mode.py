"""Record plain PyTorch: a mode of this thread that sees calls of torch's own attention."""

import functools
import inspect
import sys
import threading
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from types import FunctionType
from typing import Any
from weakref import WeakSet

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from viz_core.torch_internals import FastPathMode, without_fast_path_modes, without_modes
from viz_core.trace.arguments import with_four_axes, with_gradient
from viz_core.trace.intervene import is_editing, refuse_edits
from viz_core.trace.outputs import compared, edited_output, on_output, on_projected
from viz_core.trace.source import Direct, Source
from viz_core.trace.torch_calls import READERS, read_call
from viz_core.trace.torch_edits import attend_in_graph
from viz_core.trace.torch_layers import SOFTMAXES, LayerTracker, TrackedLayer, edits_of_call, softmax_weights
from viz_core.trace.trace import Trace, current_trace, last_site
from viz_core.trace.used_weights import OwnWeights, Pending, factors_of, is_signed
from viz_core.trace.weights import attention_weights


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
        if layers.model is not None:
            wrap_flex_attention(layers.model)

    @property
    def site(self) -> str | None:
        """The site of this thread's current layer."""
        return self._layers.layer.site

    def add(self, source: Source, site: str | None) -> Any:
        """Add a call, with the site of its layer or None, and return what `change` and `drop` know it by.

        ValueError if an edit names one of given weights.
        """
        if isinstance(source, Direct):
            refuse_edits(site)
        self._trace.add(source, site)
        return last_site.get()

    def change(self, handle: Any, **fields: Any) -> None:
        """Change what was added."""
        self._trace.put(handle, replace(self._trace[handle].source, **fields))  # type: ignore[type-var]

    def drop(self, handle: Any) -> None:
        """Take back what was added."""
        self._trace.drop(handle)

    def __exit__(self, *error: object) -> None:
        self.finish_layer()
        self._add_own(None)
        super().__exit__(*error)

    def __torch_function__(self, func: Any, _types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        """Return the result of the call; if it was attention, add it to the recorder."""
        kwargs = kwargs or {}
        if current_trace(self._layers.layer.site) is not self._trace or getattr(_thread, "in_call", False):
            return func(*args, **kwargs)
        self._layers.follow(func, (*args, *kwargs.values()))
        layer = self._layers.layer
        if layer.weighs_parts or (func not in READERS and not (layer.spans_all_keys and func in SOFTMAXES)):
            return self._other_call(func, args, kwargs, layer)
        _thread.in_call = True  # a call is recorded once, however many modes there are
        try:
            if self._trace.differentiable and func in READERS:
                return self._call_in_graph(func, args, kwargs, layer)
            edits_before = edits_of_call.get()
            result = func(*args, **kwargs)
        finally:
            _thread.in_call = False
        with without_modes():  # no mode sees what is computed for the recorder alone
            _thread.own = None
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
                if self._trace.differentiable:
                    result = weights.reshape(result.shape)  # so that the graph passes through what is recorded
                pending = self._pending(layer)
                if pending is None:
                    self.finish_layer()
                    pending = _thread.pending = Pending(self, layer)
                pending.add(self.add(Direct(weights), layer.site), weights.shape, result)
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

    def _pending(self, layer: TrackedLayer) -> Pending | None:
        pending: Pending | None = getattr(_thread, "pending", None)
        return pending if pending is not None and pending.mode is self and pending.layer is layer else None

    def _own(self, layer: TrackedLayer) -> OwnWeights | None:
        """Return the weights that the layer makes without a softmax so far; None where it may not do so."""
        own: OwnWeights | None = getattr(_thread, "own", None)
        if own is None or own.mode is not self or own.layer is not layer:
            self._add_own(None)
            _thread.own = own = OwnWeights(self, layer) if layer.spans_all_keys else None
        return own

    def _add_own(self, projected: Tensor | None) -> None:
        """Record weights that a layer made without a softmax of torch's, unless what is projected is another thing.

        ValueError if the trace is differentiable.
        """
        own: OwnWeights | None = getattr(_thread, "own", None)
        if own is None or own.mode is not self:
            return
        _thread.own = None
        if len(own.found) != 1:  # several products: parts of a map
            return
        used, site = own.found[0], own.layer.site
        with without_modes():
            weights, output = used.weights.detach(), used.result.detach().reshape(*used.weights.shape[:3], -1)
            source = Direct(weights, used.values.detach() if self._values and used.values is not None else None)
            if projected is not None and compared(source, output, projected).is_changed:
                return
            if self._trace.differentiable:
                raise ValueError(
                    f"site {site!r}: expected no differentiable where weights come without torch's softmax"
                )
            handle = self.add(replace(source, signed=is_signed(weights)), site)
            if source.values is not None:
                on_output(self._trace, output, handle)

    def _other_call(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], layer: TrackedLayer
    ) -> Any:
        """Return the result of a call that is not attention; it may multiply weights by values, or project outputs."""
        if func in _LINEAR:
            with without_modes():
                pending, own = self._pending(layer), self._own(layer)
                inputs, weight = _projected(func, args, kwargs)
                if pending is not None and pending.candidate is not None:
                    self.finish_layer()
                if own is not None and own.found and (layer.projection is None or layer.projection is weight):
                    self._add_own(None if layer.projection is None else inputs)
                if self._values and (layer.projection is weight or self._layers.model is None):
                    on_projected(self._trace, inputs, is_known=self._layers.model is not None)
            return func(*args, **kwargs)
        result, pending = func(*args, **kwargs), self._pending(layer)
        if pending is None:
            with without_modes():
                if (own := self._own(layer)) is not None:
                    own.follow(func, args, result)
        else:
            with without_modes():
                for weights, values in factors_of(func, args):
                    found = pending.find(weights, values, result)
                    if found is not None and self._values and found.values is not None:
                        self.change(found.handle, values=found.values.detach())
                        on_output(self._trace, result.reshape(*found.shape[:3], -1))
        return result

    def finish_layer(self) -> None:
        """Record the weights that a layer multiplied its values by, where these are not the result of its softmax.

        Raises:
            ValueError: if the trace is differentiable, and the weights changed after the softmax.
        """
        pending: Pending | None = getattr(_thread, "pending", None)
        if pending is None or pending.mode is not self:
            return
        _thread.pending = None
        used = pending.candidate
        if used is None or not pending.softmaxes:
            return
        with without_modes():
            first, *others = (softmax.handle for softmax in pending.softmaxes)
            for handle in others:  # parts of one map, such as a difference
                self.drop(handle)
            if self._trace.differentiable and not used.is_factor:
                raise ValueError(
                    f"{pending.layer.site}: expected no differentiable where weights change after a softmax"
                )
            weights = used.weights if self._trace.differentiable else used.weights.detach()
            values = used.values.detach() if self._values and used.values is not None else None
            self.change(first, weights=weights, values=values, signed=is_signed(weights))
            if values is not None:
                on_output(self._trace, used.result.reshape(*weights.shape[:3], -1), first)

    def warn_of_missing(self, sites: Iterable[str]) -> None:
        """Warn of the layers that ran and are not among the recorded sites."""
        missing = self._layers.describe_missing({site.partition("@")[0] for site in sites})
        if missing:
            warnings.warn(f"record: not recorded: {missing}", stacklevel=4)


def _projected(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """Return inputs and weight of a call of a linear function."""
    names = _LINEAR[function]
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    return given[names[-2]], given[names[-1]]


_LINEAR = {F.linear: ("input", "weight"), torch.addmm: ("input", "mat1", "mat2")}  # inputs and weight are the last
_thread = threading.local()  # whether it is within a recorded call, and which weights await their values (`Pending`)


_wrapping = threading.Lock()
_wrappers = WeakSet[Callable[..., Any]]()


def wrap_flex_attention(model: nn.Module) -> None:
    """Wrap flex_attention, compiled or not, where the code of a model's modules has a global name for it.

    It compiles itself, so no mode sees its call. Outside of a recording the wrapper does what it did.
    """
    module = sys.modules.get("torch.nn.attention.flex_attention")
    if module is None:  # nobody calls it
        return
    with _wrapping:
        for kind in {type(part) for part in model.modules()}:
            names = getattr(inspect.unwrap(kind.forward), "__globals__", {})
            for name, value in list(names.items()):
                is_flex = isinstance(value, FunctionType) and inspect.unwrap(value) is module.flex_attention
                if is_flex and value not in _wrappers:  # a wrapper that was compiled is wrapped again
                    names[name] = _wrapped(value)
                    _wrappers.add(names[name])


def _wrapped(flex_attention: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(flex_attention)
    def run(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        score_mod: Callable[..., Tensor] | None = None,
        block_mask: Any = None,
        scale: float | None = None,
        enable_gqa: bool = False,
        **options: Any,
    ) -> Any:
        trace = None if torch.compiler.is_compiling() else current_trace()
        if trace is None or trace.torch_mode is None:
            return flex_attention(query, key, value, score_mod, block_mask, scale, enable_gqa, **options)
        mode: Any = trace.torch_mode  # a RecordingMode
        site = mode.site
        if trace.differentiable:
            raise ValueError(
                f"site {site!r}: expected no differentiable where flex_attention runs, a kernel of its own"
            )
        with without_fast_path_modes():
            result = flex_attention(query, key, value, score_mod, block_mask, scale, enable_gqa, **options)
            with torch.no_grad():
                edit = functools.partial(_changed_scores, score_mod, getattr(block_mask, "mask_mod", None))
                weights = attention_weights(query.detach(), key.detach(), scale=scale, edit=edit)
            mode.add(Direct(weights, value.detach() if trace.values else None), site)
            on_output(trace, result[0] if isinstance(result, tuple) else result)
        return result

    return run


def _changed_scores(
    score_mod: Callable[..., Tensor] | None, mask_mod: Callable[..., Tensor] | None, scores: Tensor
) -> Tensor:
    """Return scores as the functions change and hide them, which take one score's batch, head, query and key."""
    places = [torch.arange(size, device=scores.device) for size in scores.shape]
    if score_mod is not None:
        scores = _over_all(score_mod, (0,))(scores, *places)
    return scores if mask_mod is None else torch.where(_over_all(mask_mod, ())(*places), scores, -torch.inf)


def _over_all(function: Callable[..., Tensor], before: tuple[int, ...]) -> Callable[..., Tensor]:
    """Map a function of one place over all of them."""
    for axis in reversed(range(4)):
        function = torch.vmap(function, in_dims=(*before, *(0 if each == axis else None for each in range(4))))
    return function

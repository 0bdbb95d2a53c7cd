"""Layers with attention code of their own: which these are, which cannot be recorded, and hooks that record them."""

import inspect
import re
import threading
import warnings
from collections import Counter
from collections.abc import Collection, Mapping
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from viz_core.hub.attention import ATTENTION_IMPLEMENTATION, WITH_EAGER_MASKS
from viz_core.hub.transformers_internals import CALLS_INTERFACE, has_rule
from viz_core.torch_internals import in_graph, is_transformed
from viz_core.trace import site_of
from viz_core.trace.intervene import refuse_edits
from viz_core.trace.outputs import on_output
from viz_core.trace.points import SamplingMode
from viz_core.trace.sites import is_linear_attention
from viz_core.trace.source import Direct, Source
from viz_core.trace.torch_layers import LayerTracker, TrackedLayer, spans_all_keys
from viz_core.trace.torch_mode import RecordingMode
from viz_core.trace.trace import Trace, current_trace, last_site
from viz_core.trace.weights import TokenMask, allowed_keys

_ATTENDS = re.compile(
    r"oftmax(\.apply)?\(|\b(scaled_dot_product|flex|shifted_window)_attention\(|\bmulti_head_attention_forward\("
)

_PRODUCT = r"(?:[\w)\]] ?@ ?[\w(]|\bmatmul\(|\bbmm\(|\beinsum\()"
_OF_SCORES = r"\b(?:exp_?|sigmoid|relu)\("
_MULTIPLIES = re.compile(rf"(?:{_PRODUCT}[\s\S]*{_OF_SCORES}|{_OF_SCORES}[^\n]*{_PRODUCT})[\s\S]*{_PRODUCT}")
"""Code of attention without a softmax of torch's: a product of queries and keys, a function of it, one with values."""


def own_sites(sites: Mapping[nn.Module, str]) -> tuple[str, ...]:
    """The sites none of whose layers calls transformers' attention interface.

    Judged by the code of each layer's class, as transformers does by that of whole modules: one module may hold both
    kinds (BigBird's encoder and its decoder), and a class of one's own, in a notebook, has no module to look at.
    """
    passing = {site for layer, site in sites.items() if _code(type(layer), CALLS_INTERFACE)}  # type: ignore[arg-type]
    return tuple(dict.fromkeys(site for site in sites.values() if site not in passing))


def outermost(sites: Mapping[nn.Module, str], wanted: Collection[str]) -> dict[nn.Module, str]:
    """The layers of the wanted sites that lie in no other layer."""
    inner = {id(part) for layer in sites for part in layer.modules() if part is not layer}
    return {layer: site for layer, site in sites.items() if site in wanted and id(layer) not in inner}


def hidden_sites(sites: Mapping[nn.Module, str]) -> tuple[str, ...]:
    """Sites with code of their own that cannot be recorded: no softmax over all keys."""
    hidden = (site for layer, site in outermost(sites, own_sites(sites)).items() if not _can_be_recorded(layer))
    return tuple(dict.fromkeys(hidden))


def _can_be_recorded(layer: nn.Module) -> bool:
    if samples_points(layer):
        return True
    if hasattr(layer, "lambda_init"):  # DiffLlama before transformers 5, whose softmaxes are not what it uses
        return False
    kinds = {type(module) for module in layer.modules()}
    if any(is_linear_attention(part) and has_rule(part) for part in layer.modules()):
        return True
    attends = any(issubclass(kind, nn.MultiheadAttention) or _code(kind, _ATTENDS) for kind in kinds)  # type: ignore[arg-type]
    return (attends or any(_code(kind, _MULTIPLIES) for kind in kinds)) and spans_all_keys(layer)  # type: ignore[arg-type]


@lru_cache(maxsize=256)
def _code(layer: type[nn.Module], pattern: re.Pattern[str]) -> bool:
    """Whether a pattern stands in the code of a class of layers, or of what it is made from."""
    for each in layer.__mro__:
        if issubclass(each, nn.Module) and not each.__module__.startswith("torch."):
            try:
                if pattern.search(inspect.getsource(each)):
                    return True
            except (OSError, TypeError):  # no source to read
                continue
    return False


def implementation_for(before: str | None, fused: bool) -> str:
    """The name under which our attention is given the masks that a model relies on.

    Eager masks are numbers to be added, or none where all is seen. To fused attention they are boolean, and no mask
    means causal where a layer says so: models that support it promise that. Others may read the masks in code of their
    own, as DeepSeek V4's compressed keys and the experts of NLLB do, and get those that they had.
    """
    return WITH_EAGER_MASKS if before == "eager" and not fused else ATTENTION_IMPLEMENTATION


_COMPUTES_WITH_MASK = re.compile(r"attention_mask\.(dtype|new_)|(pad|cat)\(\s*[\[(]?\s*attention_mask")


def takes_boolean_masks(layers: Collection[nn.Module]) -> bool:
    """Whether layers are causal, as Gemma 2's are, and do not compute with their masks: then boolean ones do."""
    causal = all(getattr(layer, "is_causal", False) for layer in layers)
    return causal and not any(_code(type(layer), _COMPUTES_WITH_MASK) for layer in layers)  # type: ignore[arg-type]


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
        self.layer, self._found, self._given = layer, list[Source | None](), given
        self._sampled: tuple[int, Tensor] | None = None
        self._site = site_of(layer)
        super().__init__(trace, LayerTracker(None, TrackedLayer(self._site, layer)))

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        """Return the result of the call, and keep which queries a layer samples."""
        result = super().__torch_function__(func, types, args, kwargs)
        if func is Tensor.topk and "ProbSparse" in type(self.layer).__name__:
            self._sampled = args[0].shape[-1], result[1]
        return result

    def add(self, source: Source, site: str | None) -> int:  # noqa: ARG002
        """Keep a part of the call until it is over."""
        self._found.append(source)
        return len(self._found) - 1

    def change(self, handle: int, **fields: Any) -> None:
        """Change a part of the call."""
        self._found[handle] = replace(self._found[handle], **fields)  # type: ignore[type-var]

    def drop(self, handle: int) -> None:
        """Take back a part of the call."""
        self._found[handle] = None

    def finish(self, _result: Any) -> None:
        """Record whole maps; maps of several shapes are parts of one and are left out with a warning."""
        found = [source for source in self._found if source is not None]
        if len({source.shape for source in found}) != 1:
            name = type(self.layer).__name__
            warnings.warn(f"{self._site}: expected {name} to weigh all keys at once; it is not recorded", stacklevel=2)
            return
        for source in found:
            if isinstance(source, Direct) and self._sampled is not None:
                source = _every_query(source, *self._sampled, decoder=self.layer.is_decoder)  # type: ignore[arg-type]
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


def _every_query(source: Direct, num_queries: int, sampled: Tensor, decoder: bool) -> Direct:
    """Return a row for every query, where a layer's softmax has those that it samples alone, other ones in each head.

    The others write the mean of all values, or in a decoder the sum of those up to their own (Zhou 2021, section 3).
    """
    batch, heads, count, num_keys = source.shape
    rest = source.weights.new_ones(num_queries, num_keys)
    rest = rest.tril() if decoder else rest / num_keys
    places = sampled.reshape(batch, heads, count)
    rows = rest.repeat(batch, heads, 1, 1).scatter(2, places[..., None].expand(source.shape), source.weights)
    is_sampled = places.new_zeros(batch, heads, num_queries, dtype=torch.bool).scatter(2, places, True)
    return replace(source, weights=rows, sampled=is_sampled, signed=decoder)


_open: ContextVar[tuple["_RecordedCall | _SampledCall", ...]] = ContextVar("open", default=())
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
    call: _RecordedCall | _SampledCall
    if samples_points(layer):
        call = _SampledCall(layer, trace, inspect.signature(layer.forward).bind_partial(*args, **kwargs).arguments)
    else:
        call = _RecordedCall(layer, trace, (*args, *kwargs.values()))
    call.__enter__()
    _open.set((*_open.get(), call))


def _after(layer: nn.Module, _inputs: Any, result: Any) -> None:
    if in_graph(site_of(layer)):
        return
    calls = _open.get()
    if not calls or calls[-1].layer is not layer:
        return
    _open.set(calls[:-1])
    calls[-1].__exit__(None, None, None)
    with _changing:
        _active_calls[id(layer)] -= 1
        if not _active_calls[id(layer)]:
            del _active_calls[id(layer)]
            if id(layer) in _pending_removal:
                _pending_removal.pop(id(layer)).remove()
    if result is not None:  # it did not fail
        calls[-1].finish(result)


_SAMPLERS = re.compile("Multi[sS]caleDeformableAttention$")


def samples_points(layer: nn.Module) -> bool:
    """Whether a layer is deformable attention whose points are recorded: those between the places of feature maps.

    RT-DETR v2 and D-FINE may round them to places instead.
    """
    rounds = "discrete" in (getattr(layer, "method", ""), getattr(layer, "decoder_method", ""))
    return _SAMPLERS.search(type(layer).__name__) is not None and not rounds


class _SampledCall(SamplingMode):
    """The points that one call of a layer reads, recorded when the call is over."""

    def __init__(self, layer: nn.Module, trace: Trace, given: dict[str, Any]) -> None:
        super().__init__()
        self.layer, self._trace, self._mask = layer, trace, given.get("attention_mask")

    def finish(self, result: Any) -> None:
        """Record what was sampled, with the weights that the layer returns."""
        site, mask = site_of(self.layer), None if self._mask is None else self._mask.bool()
        source = self.source(result[1], mask, self._trace.values)
        self._trace.add(source, site)
        if self.output is not None:
            batch, heads, *_ = source.shape
            on_output(self._trace, self.output.unflatten(0, (batch, heads)).mT, last_site.get())

"""The current layer of a model in plain PyTorch, and its attention, recorded at the softmax the model computes."""

import re
import threading
from collections.abc import Callable, Iterable, Set
from collections.abc import Set as AbstractSet
from contextvars import ContextVar
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from viz_core.trace.coverage import cover_layers, describe_uncovered
from viz_core.trace.edits import Edits
from viz_core.trace.passes import site_of
from viz_core.trace.sites import find_sites, projections

SOFTMAXES: frozenset[Callable[..., Any]] = frozenset({F.softmax, torch.softmax, Tensor.softmax})

_HEADS = "num_heads num_attention_heads num_attn_heads n_heads n_head nhead heads h".split()

_PARTS = re.compile(
    r"Longformer|^LSH|^LocalSelfAtt|LED(Global|Encoder)|BlockSparse|LongT5(Local|Transient)|GlobalLocal"
    r"|Autoformer|Gemma\w+Audio|Nystrom|Deformable|LinearSelf|EfficientAdditive|MaskUnit|Assign"
    r"|FactorAttn|CrossCovariance|Outlook|SplitAttn|SelectiveKernel|ChannelAttention|HaloAttn|XCA$|SpatialTransformerBlock"
)
"""Classes whose softmax weighs parts of the keys, or no keys: windows, blocks, lags, sampled points, groups,
channels."""


def spans_all_keys(layer: nn.Module) -> bool:
    """Whether the softmax in a layer is over all keys at once, judged by the class names of its modules."""
    return not any(_PARTS.search(type(module).__name__) for module in layer.modules())


def possible_head_counts(layer: nn.Module) -> frozenset[int]:
    """Return the numbers of heads that a layer or its modules have as attributes; empty without any."""
    numbers = (getattr(module, name, None) for module in layer.modules() for name in _HEADS)
    return frozenset(number for number in numbers if type(number) is int and number > 0)


def softmax_weights(
    result: Tensor, heads: Set[int], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Float[Tensor, "batch heads queries keys"] | None:
    """Return the result of a softmax as weights (batch, heads, queries, keys); None if it is not attention over keys.

    It is not if the softmax is over another axis than the last, or the second of four axes is not heads: windows of
    the text, sampled points.

    Args:
        heads: possible numbers of heads. With three axes they share the first with the batch.
        args, kwargs: the arguments of the softmax.
    """
    dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
    if dim is None or dim % result.dim() != result.dim() - 1:
        return None
    if result.dim() == 3:
        number = next((n for n in sorted(heads, reverse=True) if result.shape[0] % n == 0), 1)
        return result.unflatten(0, (-1, number))
    if result.dim() > 4 and result.shape[-3] in heads:  # windows of each picture: torchvision's MaxViT
        result = result.flatten(0, -4)
    return result if result.dim() == 4 and (not heads or result.shape[1] in heads) else None


edits_of_call: ContextVar[Edits | None] = ContextVar("edits_of_call", default=None)
"""Edits of the current call of torch's attention; a recorder stores them with the call."""


class TrackedLayer:
    """One attention layer: its site, its possible numbers of heads, and whether it weighs all keys or parts of them."""

    def __init__(
        self, site: str | None = None, layer: nn.Module | None = None, projection: nn.Module | None = None
    ) -> None:
        self.site = site
        self.projection = getattr(projection, "weight", None)  # of its output projection, if that is known
        weights = [] if layer is None else [each for each in layer.parameters() if each.dim() > 1]
        self.last = weights[-1] if self.projection is None and weights else self.projection
        self.heads = frozenset[int]() if layer is None else possible_head_counts(layer)
        self.spans_all_keys = layer is not None and spans_all_keys(layer)
        self.weighs_parts = layer is not None and not self.spans_all_keys


_NO_LAYER = TrackedLayer()


class LayerTracker:
    """Tracks, for each thread, the attention layer whose weights were used last.

    Args:
        layer: the current one until then; without a model, always.

    Attributes:
        used: sites of the layers that ran so far.
    """

    def __init__(self, model: nn.Module | None, layer: TrackedLayer = _NO_LAYER) -> None:
        self.model, self.used = model, set[str]()
        self._weights = {} if model is None else _weights_of_layers(model)
        self._thread, self._first = threading.local(), layer

    @property
    def layer(self) -> TrackedLayer:
        """The current layer of this thread; one without a site outside the model's attention layers."""
        current: TrackedLayer = getattr(self._thread, "layer", self._first)
        return current

    def follow(self, func: Callable[..., Any], arguments: Iterable[Any]) -> None:
        """Set the current layer from the arguments of a call, if the model's weights are among them.

        Weights of no layer, as of position biases that all layers share, are used within a layer too: until its last.
        """
        if not self._weights:
            return
        known = [self._weights[id(each)] for each in arguments if id(each) in self._weights]
        layer = next((layer for _, layer in known if layer is not _NO_LAYER), _NO_LAYER)
        if layer is not _NO_LAYER:
            self._thread.is_open = not any(weight is layer.last for weight, _ in known)
        elif not known or func is F.embedding or getattr(self._thread, "is_open", False):
            return
        self._thread.layer = layer
        self.used.add(layer.site or "")

    def describe_missing(self, recorded: AbstractSet[str]) -> str:
        """Return which layers of the model ran, or mix tokens in another way, without a recorded map, and why."""
        if self.model is None or not self.used:
            return ""
        sites = find_sites(self.model)
        known = recorded | {site for layer, site in sites.items() if site_of(layer) in recorded}
        rows = cover_layers(self.model, sites, self.used - known)
        return describe_uncovered(row for row in rows if row.code not in ("", "none", "outside", "channels"))


def tracker_for(torch_calls: bool | nn.Module) -> LayerTracker | None:
    """Return what follows a model in plain PyTorch, or no model where it is True; None where it is False.

    ValueError if it is anything else.
    """
    if torch_calls is not True and torch_calls is not False and not isinstance(torch_calls, nn.Module):
        raise ValueError(f"torch_calls: expected True, False or a model, got {type(torch_calls).__name__}")
    return None if torch_calls is False else LayerTracker(None if torch_calls is True else torch_calls)


def _weights_of_layers(model: nn.Module) -> dict[int, tuple[Tensor, TrackedLayer]]:
    """Return each parameter of a model and its layer, by the parameter's id; storing it keeps the id unique."""
    layers: dict[int, tuple[Tensor, TrackedLayer]] = {id(weight): (weight, _NO_LAYER) for weight in model.parameters()}
    sites, parts = find_sites(model), dict(model.named_modules())
    for path, module in parts.items():
        if module not in sites:
            continue
        layer = TrackedLayer(sites[module], module, next(projections(parts, path), None))
        layers |= {id(weight): (weight, layer) for weight in module.parameters()}
    return layers

"""A recorder for one block of code: its attention calls, by site.

Inside a `record()` block each call is stored as references to queries and keys after projection, never as a map; any
map, tile or thumbnail is recomputed exactly when it is requested.
"""

import gc
import inspect
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from viz_core.trace.arguments import check_axes, check_device, check_tensors
from viz_core.trace.intervene import refuse_edits
from viz_core.trace.passes import set_in_block
from viz_core.trace.source import Direct
from viz_core.trace.states import state_kinds
from viz_core.trace.torch_layers import tracker_for
from viz_core.trace.torch_mode import RecordingMode
from viz_core.trace.trace import EMPTY_TRACE_HINT, Trace, current_trace, recorder
from viz_core.trace.weights import TokenMask, check_token_mask

_stores_values: ContextVar[bool] = ContextVar("stores_values", default=False)


def record_weights(
    weights: Float[Tensor, "batch heads queries keys"],
    site: str | None = None,
    values: Float[Tensor, "batch key_heads keys v"] | None = None,
    key_mask: TokenMask | None = None,
) -> None:
    """Record weights that do not come from scaled dot products (additive attention, kernels).

    Args:
        values: one for each key; stored if the recorder stores values.
        key_mask: False where a key is padding.

    Raises:
        ValueError: if weights are not a floating-point tensor of four axes, or there is not a value for each key;
            within `torch.func` while a recorder is active; if an intervention names the site: only scaled dot
            products can be edited.
    """
    refuse_edits(site)
    check_tensors(weights=weights)
    check_axes("batch heads queries keys", weights=weights)
    if values is not None:
        check_tensors(values=values)
        check_device(weights=weights, values=values)
        check_axes("batch key_heads keys v", values=values)
        if values.shape[0] != weights.shape[0] or values.shape[2] != weights.shape[3]:
            shapes = f"{tuple(weights.shape)} and {tuple(values.shape)}"
            raise ValueError(f"expected a value for each key of the weights, got shapes {shapes}")
    trace = current_trace(site)
    if trace is not None:
        own_values = values.detach() if trace.values and values is not None else None
        trace.add(Direct(weights.detach(), own_values, key_tokens=key_mask), site)


@contextmanager
def record(
    differentiable: bool = False,
    torch_calls: bool | nn.Module = False,
    *,
    values: bool = False,
    states: bool | Collection[str] = False,
    attention: bool = True,
    token_mask: TokenMask | Mapping[str, TokenMask] | None = None,
    kind: Callable[[bool, bool], Trace] | None = None,
) -> Iterator[Trace]:
    """Record every attention call of this thread or task in this block.

    Layers under `torch.compile`, within `torch.func` and in a second run of activation checkpointing are refused. What
    `torch.export` or `torch.jit` made is not recorded: it has no layers.

    Args:
        differentiable: compute weights whole, outside the fused kernel, and leave them in the graph, so that an output
            can be differentiated with respect to them: `call.graph_weights`. Needs much memory; for small inputs.
        torch_calls: also record plain PyTorch: `F.scaled_dot_product_attention`, `nn.MultiheadAttention`,
            `nn.Transformer` and its parts with their fast path, timm. Given the model itself, its layers have their
            names as sites ("encoder.0.self"); with True each call is "attention.N". Outputs are the same, bit for bit,
            unless differentiable, which takes no edits and no fast path.
            A nested batch is recorded at the length of its longest member. Where a named layer computes attention by
            matrix products of its own, the result of its softmax is stored as the map; a warning names the layers
            that ran and have no map, and why. Of a model given, `flex_attention` too, where its code has a global name
            for that.
        values: also store references to values, for `viz_core.maps.contributions`.
        states: also store references to `Trace.states`, of our models and of transformers' after `instrument`; True for
            all kinds, or some by the last part of their names: ("residual",).
        attention: False stores no attention call, but states alone.
        token_mask: True where there is a token, (batch, n), or one for each stack: {"encoder": ..., "decoder": ...}.
            Only where no mask of the model says so, as for the padded targets of a decoder.
        kind: makes the trace from the arguments of `Trace`: a subclass may store fewer calls.

    Raises:
        ValueError: if torch_calls is neither a truth value nor a model; if values come with differentiable; if
            token_mask is not boolean (batch, n), or an attention in the block is of another size; where a layer is
            refused; if there is no such kind of state, or nothing to store.
    """
    trace = (kind or Trace)(differentiable, values or (_stores_values.get() and not differentiable))
    trace.keeps_states, trace.keeps_calls = state_kinds(states), attention
    if not attention and (torch_calls or not trace.keeps_states):
        raise ValueError("attention: expected True with torch_calls or without states")
    trace.token_mask = {} if token_mask is None else check_token_mask(token_mask)
    layers = tracker_for(torch_calls)
    trace.torch_mode = mode = None if layers is None else RecordingMode(trace, layers)
    try:
        with trace.adopt():
            yield trace
        if mode is not None:
            mode.warn_of_missing(trace.sites)
        if not (len(trace) or trace.states or trace.may_be_empty):
            warnings.warn(f"record: nothing was recorded. {why_empty(torch_calls)}", stacklevel=3)
    finally:
        trace.torch_mode = None


def no_recording() -> AbstractContextManager[None]:
    """Record nothing in this block: while a text is generated step by step, before one pass over it is recorded."""
    return set_in_block(recorder, None)


def recording_values() -> AbstractContextManager[None]:
    """Have every `record()` in this block store values too, except with `differentiable`."""
    return set_in_block(_stores_values, True)


_SOFTMAX = re.compile(r"softmax\(|\bscaled_dot_product_attention\(|\bMultiheadAttention\(|\bflex_attention\(")
_MOST = 4


def why_empty(torch_calls: bool | nn.Module) -> str:
    """Return why `record` saw no attention, and what may have computed some."""
    if isinstance(torch_calls, nn.Module):
        found = list(candidates(torch_calls))
        if not found:
            name = type(torch_calls).__name__
            return f"No code of {name} that can be read computes a softmax or calls torch's attention"
        return (
            f"A softmax in code of one's own is recorded where its layer is named and numbered, as in "
            f'layers.0.attention of a class with "Attention" in its name. These compute one: {_listed(found)}'
        )
    models = _not_instrumented()
    if models and not torch_calls:
        return f"instrument(model) was not called for {_listed(models)}. {EMPTY_TRACE_HINT}"
    return EMPTY_TRACE_HINT


def candidates(model: nn.Module) -> Iterator[str]:
    """Yield the paths and classes of the modules whose own code computes a softmax, or calls torch's attention."""
    for path, module in model.named_modules():
        if _attends(type(module)):  # type: ignore[arg-type]
            yield f"{path or 'the model itself'} ({type(module).__name__})"


@lru_cache(maxsize=256)
def _attends(kind: type[nn.Module]) -> bool:
    if kind.__module__.partition(".")[0] == "torch":
        return issubclass(kind, nn.MultiheadAttention)
    try:
        return _SOFTMAX.search(inspect.getsource(kind)) is not None
    except (OSError, TypeError):  # no source to read
        return False


def _not_instrumented() -> list[str]:
    """Return the classes of transformers' models in memory that are not instrumented, none of one within another."""
    transformers: Any = sys.modules.get("transformers")
    if transformers is None:
        return []
    models = [each for each in gc.get_objects() if issubclass(type(each), transformers.PreTrainedModel)]
    inner = {id(part) for model in models for part in model.modules() if part is not model}
    return list(dict.fromkeys(type(m).__name__ for m in models if id(m) not in inner and not _is_instrumented(m)))


def _is_instrumented(model: nn.Module) -> bool:
    return any(hasattr(part, "attention_before") for part in model.modules())


def _listed(names: list[str]) -> str:
    return ", ".join(names[:_MOST]) + (f" and {len(names) - _MOST} more" if len(names) > _MOST else "")

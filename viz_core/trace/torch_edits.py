"""Editing heads of plain PyTorch: a mode of this thread that makes some heads again after torch's own attention."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from viz_core.torch_internals.function_modes import without_modes
from viz_core.trace.edits import Edits
from viz_core.trace.pooling import edited_output, pooled_in_blocks
from viz_core.trace.source import Projected
from viz_core.trace.torch_calls import READERS, projected_values, read_call
from viz_core.trace.torch_layers import LayerTracker, edits_of_call

_KERNEL, _MULTI_HEAD = F.scaled_dot_product_attention, F.multi_head_attention_forward


class EditingMode(TorchFunctionMode):
    """Torch's fast paths, which give no head by itself, are left meanwhile: torch does that where any mode is.

    Args:
        edits_of: what is done to a call at a site, by its source and whether it is causal.
        listening: whether this thread's calls are to be edited now.
        model: whose layers are named, as in `record`.
    """

    def __init__(
        self,
        edits_of: Callable[[Projected, str | None], Edits | None],
        listening: Callable[[], bool],
        model: nn.Module | None,
    ) -> None:
        super().__init__()
        self._edits_of, self._listening, self._layers = edits_of, listening, LayerTracker(model)

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """The call as it is, and then its edited heads in place of those that came."""
        kwargs = kwargs or {}
        self._layers.follow((*args, *kwargs.values()))
        if func not in (_KERNEL, _MULTI_HEAD) or not self._listening():
            return func(*args, **kwargs)
        with without_modes():
            source = read_call(func, args, kwargs)
            edits = self._edits_of(source, self._layers.layer.site)
        edits_of_call.set(edits)
        result = func(*args, **kwargs)
        if edits is None:
            return result
        given = {**dict(zip(READERS[func][1], args, strict=False)), **kwargs}
        with without_modes():
            edit = _after_kernel if func is _KERNEL else _after_multi_head
            return edit(result, replace(source, edits=edits), given)


def _after_kernel(result: Tensor, source: Projected, given: dict[str, Any]) -> Tensor:
    """The kernel's output (..., heads, queries, v), edited."""
    if result.is_nested:
        raise ValueError("intervene: expected padded batches where plain PyTorch's heads are edited, got nested ones")
    value = given["value"][(None,) * (4 - given["value"].dim())]
    flat = result[(None,) * (4 - result.dim())].flatten(0, -4)
    values = value.expand(*result.shape[:-3], *value.shape[-3:]).flatten(0, -4) if result.dim() > 3 else value
    edited = edited_output(flat, source, values, given.get("dropout_p", 0.0))
    return edited.reshape(result.shape)


def _after_multi_head(result: Any, source: Projected, given: dict[str, Any]) -> Any:
    """What `F.multi_head_attention_forward` returns, with the difference of the edited heads carried through W_o.

    Heads that are not named add what they did; the sum is rounded anew.
    """
    if given.get("training", True) and given["dropout_p"] > 0:
        raise ValueError(
            "intervene: expected no dropout within nn.MultiheadAttention, whose dropped weights are hidden"
        )
    values, plain = projected_values(**given), replace(source, edits=None)
    before = pooled_in_blocks(plain, values.to(plain.queries.dtype), 0.0)
    change = edited_output(before, source, values.to(plain.queries.dtype)) - before
    output, weights = result
    added = F.linear(rearrange(change, "b h n v -> n b (h v)"), given["out_proj_weight"])
    output = output + (added[:, 0] if output.dim() == 2 else added)
    if weights is not None:
        weights = _edited_weights(weights, source, given.get("average_attn_weights", True))
    return output, weights


def _edited_weights(weights: Tensor, source: Projected, averaged: bool) -> Tensor:
    """The weights that torch returns, of each head or their mean, (batch, heads, queries, keys) or without a batch."""
    every = slice(0, source.shape[1]), slice(0, source.shape[2])
    found = source.rows(*every).to(weights)
    found = found.mean(dim=1) if averaged else found
    return found if found.dim() == weights.dim() else found[0]

"""Torch's own attention computed from weights: to edit its heads, and for `record(differentiable=True)`."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.overrides import TorchFunctionMode

from viz_core.torch_internals import in_graph, without_modes
from viz_core.trace.arguments import with_four_axes, with_gradient
from viz_core.trace.edits import Edits
from viz_core.trace.outputs import edited_output, pooled, pooled_in_blocks
from viz_core.trace.source import Projected
from viz_core.trace.torch_calls import named_arguments, project_heads, read_call, read_in_graph, returned_weights
from viz_core.trace.torch_layers import LayerTracker, edits_of_call

_KERNEL, _MULTI_HEAD = F.scaled_dot_product_attention, F.multi_head_attention_forward


class EditingMode(TorchFunctionMode):
    """Replaces edited heads in the result of torch's attention.

    Torch leaves its fast paths, which give no single head, while any mode is active.

    Args:
        edits_of: gives the edits of a call, from its source and site.
        is_active: whether this thread's calls are to be edited now.
        layers: knows the current layer, as of a `RecordingMode`.
    """

    def __init__(
        self,
        edits_of: Callable[[Projected, str | None], Edits | None],
        is_active: Callable[[], bool],
        layers: LayerTracker,
    ) -> None:
        super().__init__()
        self._edits_of, self._is_active, self.layers = edits_of, is_active, layers

    def __torch_function__(self, func: Any, _types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        """Return the result of the call with its edited heads replaced."""
        kwargs = kwargs or {}
        in_graph()  # refuses torch.compile
        self.layers.follow(func, (*args, *kwargs.values()))
        if func not in (_KERNEL, _MULTI_HEAD) or not self._is_active() or self.layers.layer.weighs_parts:
            return func(*args, **kwargs)
        with without_modes():
            source = read_call(func, args, kwargs)
            edits = self._edits_of(source, self.layers.layer.site)
        edits_of_call.set(edits)
        result = func(*args, **kwargs)
        if edits is None:
            return result
        arguments = named_arguments(func, args, kwargs)
        with without_modes():
            values = read_in_graph(func, arguments).values  # the source has no graph
            edit = _after_kernel if func is _KERNEL else _after_multi_head
            return edit(result, replace(source, edits=edits), values, arguments)


def _after_kernel(result: Tensor, source: Projected, values: Any, arguments: dict[str, Any]) -> Tensor:
    """Return the kernel's output (..., heads, queries, v) with its edited heads replaced."""
    if result.is_nested:
        raise ValueError("intervene: expected padded batches where plain PyTorch's heads are edited, got nested ones")
    flat = with_four_axes(result).flatten(0, -4)
    return edited_output(flat, source, values, arguments.get("dropout_p", 0.0)).reshape(result.shape)


def _after_multi_head(result: Any, source: Projected, values: Any, arguments: dict[str, Any]) -> Any:
    """Return the result of `F.multi_head_attention_forward` plus W_o times the change of the edited heads.

    The sum rounds differently, also for heads without an edit.
    """
    if arguments.get("training", True) and arguments["dropout_p"] > 0:
        raise ValueError(
            "intervene: expected no dropout within nn.MultiheadAttention, whose dropped weights are hidden"
        )
    before = pooled_in_blocks(replace(source, edits=None), values, 0.0)
    change = edited_output(before, source, values) - before
    output, weights = result
    output = output + project_heads(change, arguments, None)
    if weights is not None:
        edited = source.rows(slice(0, source.shape[1]), slice(0, source.shape[2]))
        weights = returned_weights(edited.to(weights), arguments)
    return output, weights


def attend_in_graph(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Float[Tensor, "batch heads queries keys"], Any]:
    """Return the weights of a call of torch's attention, and its result computed from them.

    ValueError if it is a kernel of the fast path, which is closed while this is recorded, or a batch is nested.
    """
    given = named_arguments(function, args, kwargs)
    if function not in (F.scaled_dot_product_attention, F.multi_head_attention_forward) or given["query"].is_nested:
        raise ValueError("differentiable: expected padded batches and torch's attention functions, got a fused layer")
    source = read_in_graph(function, given)
    assert source.values is not None
    weights = with_gradient(source.rows(slice(0, source.shape[1]), slice(0, source.shape[2])))
    if function is F.scaled_dot_product_attention:
        output = pooled(weights, source.values, given.get("dropout_p", 0.0))
        query = given["query"]
        lead = torch.broadcast_shapes(query.shape[:-3], given["key"].shape[:-3])
        return weights, output.reshape(*lead, *output.shape[1:]) if query.dim() > 2 else output[0, 0]
    output = pooled(weights, source.values, given["dropout_p"] if given.get("training", True) else 0.0)
    return weights, (project_heads(output, given, given["out_proj_bias"]), returned_weights(weights, given))

"""Torch's own attention computed from weights that stay in the graph, for `record(differentiable=True)`."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from viz_core.trace.pooling import pooled
from viz_core.trace.tensors import with_gradient
from viz_core.trace.torch_calls import named_arguments, project_heads, read_in_graph, returned_weights


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

"""Weights times values without a fused kernel, and edited heads recomputed."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from viz_core.trace.source import Projected, row_blocks
from viz_core.trace.weights import attention_weights


def pooled_in_blocks(source: Projected, values: Tensor, dropout: float) -> Float[Tensor, "batch heads queries v"]:
    """Return weights times values, computed for one block of queries at a time.

    In a graph of `torch.compile` there is one block: a graph of several would be for these lengths alone.
    """
    _, num_heads, num_queries, _ = source.shape
    if torch.compiler.is_compiling():
        scored = source.queries, source.keys, source.mask, source.bias
        return pooled(attention_weights(*scored, source.causal, source.scale, source.softcap), values, dropout)
    blocks = row_blocks(source, range(num_queries), num_heads)
    return torch.cat([pooled(source.rows(slice(0, num_heads), block), values, dropout) for block in blocks], dim=2)


def edited_output(
    output: Float[Tensor, "batch heads queries v"], source: Projected, values: Tensor, dropout: float = 0.0
) -> Float[Tensor, "batch heads queries v"]:
    """Return the output with its edited heads recomputed; the others are the same, bit for bit."""
    edits = source.edits
    if edits is None:
        return output
    _, num_heads, num_queries, _ = source.shape
    group = num_heads // values.shape[1]
    heads = list(output.unbind(dim=1))
    for head in edits.edited_heads(num_heads):
        if edits.needs_weights(head):
            blocks, own = row_blocks(source, range(num_queries), 1), values[:, head // group :][:, :1]
            parts = [pooled(source.rows(slice(head, head + 1), rows), own, dropout)[:, 0] for rows in blocks]
            heads[head] = torch.cat(parts, dim=1)
        heads[head] = edits.edit_output(heads[head], head)
    return torch.stack(heads, dim=1)


def pooled(weights: Tensor, values: Tensor, dropout: float) -> Float[Tensor, "batch heads rows v"]:
    """Return sum_j w_ij v_j, each head with its group's values."""
    values = values.repeat_interleave(weights.shape[1] // values.shape[1], dim=1)
    return F.dropout(weights, dropout).to(values.dtype) @ values

"""Weights times values where no fused kernel can do it, and heads that are made again."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from viz_core.trace.source import Projected, row_blocks
from viz_core.trace.weights import attention_weights


def pooled_in_blocks(source: Projected, values: Tensor, dropout: float) -> Float[Tensor, "batch heads queries v"]:
    """Weights times values where no fused kernel can: never more weights at once than a block's.

    In a graph of `torch.compile` they are one block: a graph with so many blocks would fit these lengths alone.
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
    """The output with the edited heads made again, at their cost alone; the others are as they came, bit for bit."""
    edits = source.edits
    if edits is None:
        return output
    _, num_heads, num_queries, _ = source.shape
    group = num_heads // values.shape[1]
    found = list(output.unbind(dim=1))
    for head in edits.named(num_heads):
        if edits.reads_weights(head):
            blocks, own = row_blocks(source, range(num_queries), 1), values[:, head // group :][:, :1]
            parts = [pooled(source.rows(slice(head, head + 1), rows), own, dropout)[:, 0] for rows in blocks]
            found[head] = torch.cat(parts, dim=1)
        found[head] = edits.written(found[head], head)
    return torch.stack(found, dim=1)


def pooled(weights: Tensor, values: Tensor, dropout: float) -> Float[Tensor, "batch heads rows v"]:
    """sum_j w_ij v_j, each head with its group's values."""
    values = values.repeat_interleave(weights.shape[1] // values.shape[1], dim=1)
    return F.dropout(weights, dropout).to(values.dtype) @ values

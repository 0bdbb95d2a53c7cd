"""Outputs of heads: weights times values, edited heads recomputed, and a gate between them and their projection."""

from contextvars import ContextVar
from dataclasses import replace

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from viz_core.torch_internals import without_modes
from viz_core.trace.call import AttentionCall
from viz_core.trace.linear_rule import LinearRule
from viz_core.trace.source import Direct, Projected, row_blocks
from viz_core.trace.trace import Trace, last_site
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


_written: ContextVar[tuple[Trace, str, Tensor] | None] = ContextVar("written", default=None)


def on_output(trace: Trace | None, output: Float[Tensor, "batch heads queries v"], site: str | None = None) -> None:
    """Remember what the heads of a call, or of that recorded last, have written, until it is projected."""
    if trace is not None and trace.values:
        site = last_site.get() if site is None else site
        site = site if site in trace else None
        _written.set(None if site is None else (trace, site, output))
        if site is not None and trace.value_errors is not None:
            trace.value_errors[site] = value_error(trace[site], output)


@torch.no_grad()
def value_error(call: AttentionCall, output: Float[Tensor, "batch heads queries v"]) -> float:
    """Return the largest difference of weights times values from outputs of heads, relative to the largest output."""
    with without_modes():
        expected = output.float().cpu()
        found = pooled(call.weights(), call.values.float().cpu(), 0.0)
    return float((found - expected).abs().max() / expected.abs().max().clamp(min=1e-30)) if output.numel() else 0.0


def on_projected(trace: Trace | None, inputs: Tensor, is_known: bool = True) -> None:
    """Compare the inputs of an output projection with what the heads wrote, and record the gate between the two.

    Args:
        is_known: whether it is known to be that projection; else inputs of another size are ignored.
    """
    written = _written.get()
    if written is None or written[0] is not trace or not (is_known or inputs.numel() == written[2].numel()):
        return
    _written.set(None)
    _, site, output = written
    source = written[0][site].source
    if isinstance(source, Projected | Direct):
        written[0].put(site, compared(source, output, inputs))


@torch.no_grad()
def compared(
    source: Projected | Direct, output: Float[Tensor, "batch heads queries v"], inputs: Tensor
) -> Projected | Direct:
    """Return the source with the gate between outputs of heads and what is projected, or marked as changed."""
    batch, heads, queries, width = output.shape
    if inputs.numel() != output.numel():
        return replace(source, is_changed=True)
    found = inputs.reshape(batch, queries, heads, width).transpose(1, 2)
    if torch.equal(found, output):
        return source
    rounding = 8 * torch.finfo(output.dtype).eps
    gate = _gate(found.float(), output.float(), rounding, any_factor=isinstance(source, LinearRule))
    return replace(source, is_changed=gate is None, gate=gate)


def _gate(
    found: Tensor, output: Tensor, rounding: float, any_factor: bool
) -> Float[Tensor, "batch heads queries v"] | None:
    """Return the factor of each number: from 0 to 1 as of a sigmoid, one for each head and query, or any; else None."""
    is_zero = output == 0
    factors = torch.where(is_zero, 0, found / torch.where(is_zero, 1, output))
    if bool((any_factor | (factors >= 0) & (factors <= 1 + rounding)).all()) and not bool(found[is_zero].any()):
        return factors
    largest = output.abs().argmax(dim=-1, keepdim=True)
    alike = factors.gather(-1, largest)
    off = (found - alike * output).abs()
    return alike.expand_as(output) if bool((off <= rounding * found.abs().amax(-1, keepdim=True)).all()) else None

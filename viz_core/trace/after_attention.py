"""What an attention layer does to its heads' outputs before its output projection: nothing, or a gate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from viz_core.trace.sites import is_attention
from viz_core.trace.source import Projected
from viz_core.trace.trace import Trace, last_site

_NAMES = ("W_o", "o_proj", "out_proj", "c_proj", "o", "proj", "dense")

_written: ContextVar[tuple[Trace, str, Tensor] | None] = ContextVar("written", default=None)


def projections(parts: Mapping[str, nn.Module], layer: str) -> Iterator[nn.Module]:
    """Yield what may be the output projection of the layer at a path: within it, or, as in BERT, beside it."""
    paths, above = [f"{layer}.{name}" for name in _NAMES], layer.rpartition(".")[0]
    if above in parts and is_attention(parts[above]):  # else what lies beside belongs to a feed-forward net
        paths.append(f"{above}.output.dense")
    return (parts[path] for path in paths if path in parts)


def note_output(trace: Trace | None, output: Float[Tensor, "batch heads queries v"]) -> None:
    """Remember what the heads of the call recorded last have written, until it is projected."""
    if trace is not None and trace.values:
        _written.set((trace, last_site.get(), output) if last_site.get() in trace else None)


def note_projected(trace: Trace | None, inputs: Tensor) -> None:
    """Compare the inputs of an output projection with what the heads wrote, and record the gate between the two."""
    written = _written.get()
    if written is None or written[0] is not trace:
        return
    _written.set(None)
    _, site, output = written
    source = written[0][site].source
    if isinstance(source, Projected):
        written[0].put(site, _compared(source, output, inputs))


@torch.no_grad()
def _compared(source: Projected, output: Float[Tensor, "batch heads queries v"], inputs: Tensor) -> Projected:
    batch, heads, queries, width = output.shape
    if inputs.numel() != output.numel():
        return replace(source, is_changed=True)
    found = inputs.reshape(batch, queries, heads, width).transpose(1, 2)
    if torch.equal(found, output):
        return source
    gate = _gate(found.float(), output.float(), 8 * torch.finfo(output.dtype).eps)
    return replace(source, is_changed=True) if gate is None else replace(source, gate=gate)


def _gate(found: Tensor, output: Tensor, rounding: float) -> Float[Tensor, "batch heads queries v"] | None:
    """Return the factor of each number: from 0 to 1 as of a sigmoid, or one for each head and query; else None."""
    is_zero = output == 0
    factors = torch.where(is_zero, 0, found / torch.where(is_zero, 1, output))
    if bool(((factors >= 0) & (factors <= 1 + rounding)).all()) and not bool(found[is_zero].any()):
        return factors
    largest = output.abs().argmax(dim=-1, keepdim=True)
    alike = factors.gather(-1, largest)
    off = (found - alike * output).abs()
    return alike.expand_as(output) if bool((off <= rounding * found.abs().amax(-1, keepdim=True)).all()) else None

"""A head that does what the same head did in another run: activation patching, one head at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from viz_core.trace.arguments import described
from viz_core.trace.call import AttentionCall
from viz_core.trace.edits import Edit, Heads, Replacement, Written, heads_tuple
from viz_core.trace.weight_edits import GivenWeights


@torch.no_grad()
def patch(heads: Heads, call: AttentionCall, what: str = "weights") -> Edit:
    """Heads that look where they looked, or write what they wrote, in a recorded call.

    Queries past its last one, such as the later steps of a longer translation, do as they would. Keys past its last
    get no weight.

    Args:
        call: of another run, of the same site or one with heads like it; its batch is one, or as large.
        what: "weights", or "output", for which the call was recorded by `record(values=True)`. With "output" the
            queries that are replaced look at nothing, and their maps are zeros.

    Raises:
        ValueError: if it is neither, the call has no such head, or kept no values.
    """
    _check_call(call)
    chosen = heads_tuple(heads)
    if chosen is not None and max(chosen, default=0) >= call.num_heads:
        raise ValueError(f"heads: expected 0 to {call.num_heads - 1}, as {call.site!r} has, got {chosen}")
    if what == "weights":
        return GivenWeights(chosen, call.weights())
    if what == "output":
        return _Output(chosen, head_outputs(call))
    raise ValueError(f"what: expected 'weights' or 'output', got {what!r}")


@torch.no_grad()
def head_outputs(call: AttentionCall) -> Float[Tensor, "batch heads queries v"]:
    """sum_j a_ij v_j of each head: what it hands to the output projection, float32 on the CPU.

    Raises:
        ValueError: unless the call was recorded by `record(values=True)`.
    """
    _check_call(call)
    values = call.values.float().cpu()
    group = call.num_heads // values.shape[1]
    return torch.stack([call.weights(head=h) @ values[:, h // group] for h in range(call.num_heads)], dim=1)


def mean_outputs(call: AttentionCall, counted: Bool[Tensor, "batch queries"] | None = None) -> Float[Tensor, "heads v"]:
    """What each head writes on average, over the queries that count: what `mean` puts in its place.

    Args:
        counted: False where a query is padding; all count unless given.

    Raises:
        ValueError: unless the call was recorded by `record(values=True)` and counted are booleans (batch, queries).
    """
    outputs = head_outputs(call).transpose(1, 2)  # (batch, queries, heads, v)
    if counted is not None and (not isinstance(counted, Tensor) or counted.dtype != torch.bool):
        raise ValueError(f"counted: expected booleans, False where a query is padding, got {described(counted)}")
    if counted is not None and counted.shape != outputs.shape[:2]:
        raise ValueError(f"counted: expected shape {tuple(outputs.shape[:2])}, got {tuple(counted.shape)}")
    return (outputs.flatten(0, 1) if counted is None else outputs[counted.cpu()]).mean(dim=0)


def _check_call(call: object) -> None:
    if not isinstance(call, AttentionCall):
        raise ValueError(f"call: expected a recorded attention call, as trace['encoder.0.self'], got {described(call)}")


@dataclass(frozen=True, eq=False)
class _Output(Replacement):
    replaces: ClassVar[bool] = False  # queries past its last are the head's own
    written: Float[Tensor, "batch heads queries v"]

    def scores(self, scores: Tensor, head: int, rows: Int[Tensor, "rows"]) -> Tensor:  # noqa: ARG002
        return torch.where((rows < self.written.shape[2])[:, None], -torch.inf, scores)

    def output(self, output: Written, head: int, rows: Int[Tensor, "rows"]) -> Written:
        known = (rows < self.written.shape[2])[:, None]
        given = self.written[:, head].to(output)[:, rows.clamp(max=self.written.shape[2] - 1)]
        return torch.where(known, given, output)

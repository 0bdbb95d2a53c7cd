"""Activation patching of single heads: weights or outputs from a recorded call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from viz_core.trace.arguments import described
from viz_core.trace.call import AttentionCall
from viz_core.trace.edits import Edit, HeadOutput, Heads, Replacement, heads_tuple
from viz_core.trace.weight_edits import GivenWeights


@torch.no_grad()
def patch(heads: Heads, call: AttentionCall, what: str = "weights") -> Edit:
    """Return an edit to the weights or outputs that heads had in a recorded call.

    Queries past its last one, such as the later steps of a longer translation, are unchanged. Keys past its last one
    get no weight.

    Args:
        call: of another run, of the same site or one with heads of the same size; its batch is 1 or the same.
        what: "weights", or "output", which needs a call recorded by `record(values=True)`. With "output" the maps of
            the replaced queries are zeros.

    Raises:
        ValueError: if what is neither, the call has no such head, or it has no values.
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
    """Return sum_j a_ij v_j of each head, the input of the output projection; float32 on the CPU.

    Raises:
        ValueError: unless the call was recorded by `record(values=True)`.
    """
    _check_call(call)
    values = call.values.float().cpu()
    group = call.num_heads // values.shape[1]
    return torch.stack([call.weights(head=h) @ values[:, h // group] for h in range(call.num_heads)], dim=1)


def mean_outputs(call: AttentionCall, counted: Bool[Tensor, "batch queries"] | None = None) -> Float[Tensor, "heads v"]:
    """Return the mean output of each head over the queries that are not padding, for `mean`.

    Args:
        counted: False where a query is padding; by default no query is.

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
    replaces_output: ClassVar[bool] = False  # queries past its last one are unchanged
    recorded: Float[Tensor, "batch heads queries v"]

    def scores(self, scores: Tensor, head: int, rows: Int[Tensor, "rows"]) -> Tensor:  # noqa: ARG002
        return torch.where((rows < self.recorded.shape[2])[:, None], -torch.inf, scores)

    def output(self, output: HeadOutput, head: int, rows: Int[Tensor, "rows"]) -> HeadOutput:
        known = (rows < self.recorded.shape[2])[:, None]
        recorded = self.recorded[:, head].to(output)[:, rows.clamp(max=self.recorded.shape[2] - 1)]
        return torch.where(known, recorded, output)

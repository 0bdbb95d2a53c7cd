"""Activation patching of single heads: weights or outputs from a recorded call."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from viz_core.trace.arguments import described
from viz_core.trace.call import AttentionCall
from viz_core.trace.edits import Edit, HeadOutput, Heads, Positions, QueryPositions, Replacement, heads_tuple
from viz_core.trace.one_text import OneText
from viz_core.trace.padding import without_padding_before
from viz_core.trace.weight_edits import GivenWeights, Places, Selected, among, places_of


@torch.no_grad()
def patch(heads: Heads, call: AttentionCall, what: str = "weights", queries: Places = None) -> Edit:
    """Return an edit to the weights or outputs that heads had in a recorded call.

    Positions count from the first token of each text, here and there. Queries past its last one, such as the later
    steps of a longer translation, are unchanged. Keys past its last one get no weight.

    Args:
        call: of another run, of the same site or one with heads of the same size; its batch is 1 or the same.
        what: "weights", or "output", which needs a call recorded by `record(values=True)`. With "output" the maps of
            the replaced queries are zeros.
        queries: positions of the queries that are patched, or a slice of them; None is all.

    Raises:
        ValueError: if what is neither, the call has no such head, or it has no values.
    """
    _check_call(call)
    chosen = heads_tuple(heads)
    if chosen is not None and max(chosen, default=0) >= call.num_heads:
        raise ValueError(f"heads: expected 0 to {call.num_heads - 1}, as {call.site!r} has, got {chosen}")
    selected, lengths = places_of("queries", queries), call.query_mask.sum(dim=-1)
    if what == "weights":
        weights = _of_heads(call, chosen, lambda head: call.weights(head=head))
        keys_first = without_padding_before(weights.mT, call.key_mask).mT
        return _Weights(chosen, without_padding_before(keys_first, call.query_mask), lengths, selected)
    if what == "output":
        outputs = _of_heads(call, chosen, lambda head: _head_output(call, head))
        return _Output(chosen, without_padding_before(outputs, call.query_mask), lengths, selected)
    raise ValueError(f"what: expected 'weights' or 'output', got {what!r}")


@torch.no_grad()
def head_outputs(call: AttentionCall) -> Float[Tensor, "batch heads queries v"]:
    """Return sum_j a_ij v_j of each head after its edits, the input of the output projection; float32 on the CPU.

    Raises:
        ValueError: unless the call was recorded by `record(values=True)`.
    """
    _check_call(call)
    return _of_heads(call, None, lambda head: _head_output(call, head))


def _head_output(call: AttentionCall, head: int) -> Float[Tensor, "batch queries v"]:
    source = call.source
    if isinstance(source, OneText):  # edits of what heads write are those of the whole batch
        whole = _head_output(AttentionCall(call.site, source.source), head)
        return whole[source.row : source.row + 1, source.queries.start : source.queries.stop]
    values, edits = call.values, getattr(call.source, "edits", None)
    output = call.weights(head=head) @ values[:, head // (call.num_heads // values.shape[1])].float().cpu()
    return output if edits is None else edits.edit_output(output, head)


def _of_heads(
    call: AttentionCall, heads: Sequence[int] | None, compute: Callable[[int], Tensor]
) -> Float[Tensor, "batch heads _ _"]:
    """Return what is computed of these heads, all unless given, with zeros for the others."""
    found = {head: compute(head) for head in heads or range(call.num_heads)}
    nothing = torch.zeros_like(next(iter(found.values())))
    return torch.stack([found.get(head, nothing) for head in range(call.num_heads)], dim=1)


def mean_outputs(call: AttentionCall, counted: Bool[Tensor, "batch queries"] | None = None) -> Float[Tensor, "heads v"]:
    """Return the mean output of each head over the queries that are not padding, for `mean`.

    Args:
        counted: False where a query does not count; by default `call.query_mask`: all but padding.

    Raises:
        ValueError: unless the call was recorded by `record(values=True)` and counted are booleans (batch, queries).
    """
    outputs = head_outputs(call).transpose(1, 2)  # (batch, queries, heads, v)
    if counted is not None and (not isinstance(counted, Tensor) or counted.dtype != torch.bool):
        raise ValueError(f"counted: expected booleans, False where a query is padding, got {described(counted)}")
    if counted is not None and counted.shape != outputs.shape[:2]:
        raise ValueError(f"counted: expected shape {tuple(outputs.shape[:2])}, got {tuple(counted.shape)}")
    return outputs[(call.query_mask if counted is None else counted).cpu()].mean(dim=0)


def _check_call(call: object) -> None:
    if not isinstance(call, AttentionCall):
        raise ValueError(f"call: expected a recorded attention call, as trace['encoder.0.self'], got {described(call)}")


@dataclass(frozen=True, eq=False)
class _Weights(GivenWeights):
    lengths: Int[Tensor, " batch"]  # tokens among the recorded queries of each text
    queries: Selected

    def scores(self, scores: Tensor, head: int, at: Positions) -> Tensor:
        patched = _is_patched(at.queries, self.queries, self.lengths)
        return torch.where(patched[..., None], super().scores(scores, head, at), scores)


@dataclass(frozen=True, eq=False)
class _Output(Replacement):
    replaces_output: ClassVar[bool] = False  # queries past its last one are unchanged
    recorded: Float[Tensor, "#batch heads queries v"]
    lengths: Int[Tensor, "#batch"]
    queries: Selected

    def check(self, shape: tuple[int, int, int, int]) -> None:
        super().check(shape)
        batch, heads, queries, _ = self.recorded.shape
        if batch not in (1, shape[0]) or (self.heads is None and heads != shape[1]) or not queries:
            came = tuple(self.recorded.shape)
            raise ValueError(f"expected outputs of a batch of 1 or {shape[0]}, for {shape[1]} heads, got {came}")

    def scores(self, scores: Tensor, head: int, at: Positions) -> Tensor:  # noqa: ARG002
        return torch.where(_is_patched(at.queries, self.queries, self.lengths)[..., None], -torch.inf, scores)

    def output(self, output: HeadOutput, head: int, queries: QueryPositions) -> HeadOutput:
        if self.recorded.shape[-1] != output.shape[-1]:
            raise ValueError(f"patch: expected heads {output.shape[-1]} wide, got {self.recorded.shape[-1]}")
        recorded = self.recorded[:, head].to(output)
        rows = queries.clamp(0, recorded.shape[1] - 1)[..., None].expand(len(output), -1, output.shape[-1])
        taken = recorded.expand(len(output), -1, -1).gather(1, rows)
        return torch.where(_is_patched(queries, self.queries, self.lengths)[..., None], taken, output)


def _is_patched(
    queries: QueryPositions, selected: Selected, lengths: Int[Tensor, "#batch"]
) -> Bool[Tensor, "#batch rows"]:
    """Whether each query is a token that the recorded text has, and one of those selected."""
    return (queries >= 0) & (queries < lengths.to(queries.device)[:, None]) & among(queries, selected)

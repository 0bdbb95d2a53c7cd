"""Edits of head outputs (nothing, scaled, their mean, those of another run) and of states, which no map shows."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from viz_core.trace.arguments import check_axes, check_number, check_tensors, described
from viz_core.trace.call import AttentionCall
from viz_core.trace.edits import (
    Edit,
    HeadOutput,
    Heads,
    Positions,
    QueryPositions,
    Replacement,
    heads_tuple,
    indices_of,
)
from viz_core.trace.one_text import OneText
from viz_core.trace.weight_edits import GivenWeights, Places, Selected, among, places_of
from viz_core.trace.weights import without_padding_before

HeadsOff: TypeAlias = tuple[tuple[str, int], ...]  # (site, head) pairs


def off(*heads: int) -> Edit:
    """Return an edit to an output of 0: the gate of Michel 2019, equation 1, at 0. The maps are zeros.

    The same as zeroing the heads' columns of the output projection.

    Raises:
        ValueError: if no head is named, or one is not an integer from 0 on.
    """
    return _Off(indices_of("heads", heads))


def switched_off(heads: Iterable[tuple[str, int]]) -> dict[str, Edit]:
    """Return the edits, for `intervene`, that switch off these heads, each a site and a number."""
    sites: dict[str, list[int]] = {}
    for site, head in heads:
        sites.setdefault(site, []).append(head)
    return {site: off(*those) for site, those in sites.items()}


def gate(heads: Heads, factor: float | Tensor) -> Edit:
    """Return an edit that multiplies head outputs by a factor: xi_h Att_h (Michel 2019, equation 1).

    Maps are unchanged.

    Args:
        factor: a number, or a tensor (named heads,) or (batch, named heads); gradients reach it.

    Raises:
        ValueError: if a head is not an integer from 0 on, or the factor neither a finite number nor a floating-point
            tensor with a factor for each head; where it is applied, if it has another batch or other heads.
    """
    chosen = heads_tuple(heads)
    if isinstance(factor, Tensor):
        check_tensors(factor=factor)
        if factor.dim() > 2 or (factor.dim() and chosen is not None and factor.shape[-1] != len(chosen)):
            raise ValueError(f"factor: expected one for each of heads {chosen}, got shape {tuple(factor.shape)}")
    else:
        check_number(factor=factor)
    return _Gate(chosen, torch.as_tensor(factor))


def mean(heads: Heads, of: Float[Tensor, "all_heads v"]) -> Edit:
    """Return an edit that replaces head outputs by their mean. The maps are zeros.

    Args:
        of: the mean of each head's output over a reference set, a row for each head: `mean_outputs` of a recording.

    Raises:
        ValueError: if `of` lacks a row for a head.
    """
    chosen = heads_tuple(heads)
    check_tensors(of=of)
    check_axes("heads v", of=of)
    if chosen is not None and max(chosen, default=0) >= len(of):
        raise ValueError(f"of: expected a row for each of heads {chosen}, got shape {tuple(of.shape)}")
    return _Mean(chosen, of)


def scales_output(edit: Edit) -> bool:
    """Whether an edit multiplies what a head writes, and does nothing else: `off` or `gate`."""
    return isinstance(edit, _Off | _Gate)


class _Off(Replacement):
    needs_positions: ClassVar[bool] = False

    def output(self, output: HeadOutput, head: int, queries: QueryPositions) -> HeadOutput:  # noqa: ARG002
        return torch.zeros_like(output)

    def value_factor(self, head: int, batch: int) -> Float[Tensor, " batch"]:  # noqa: ARG002
        return torch.zeros(batch)


@dataclass(frozen=True, eq=False)
class _Mean(Replacement):
    needs_positions: ClassVar[bool] = False
    means: Float[Tensor, "heads v"]

    def check(self, shape: tuple[int, int, int, int]) -> None:
        super().check(shape)
        if self.heads is None and len(self.means) != shape[1]:
            raise ValueError(f"expected a mean for each of {shape[1]} heads, got {len(self.means)}")

    def output(self, output: HeadOutput, head: int, queries: QueryPositions) -> HeadOutput:  # noqa: ARG002
        if self.means.shape[1] != output.shape[-1]:
            raise ValueError(f"mean: expected heads {output.shape[-1]} wide, got {self.means.shape[1]}")
        return self.means[head].to(output).expand_as(output)


@dataclass(frozen=True, eq=False)
class _Gate(Edit):
    needs_positions: ClassVar[bool] = False
    factor: Tensor

    def check(self, shape: tuple[int, int, int, int]) -> None:
        super().check(shape)
        heads = shape[1] if self.heads is None else len(self.heads)
        expected = ((), (heads,), (1, heads), (shape[0], heads))
        if tuple(self.factor.shape) not in expected:
            raise ValueError(
                f"expected a factor for each of {heads} heads in a batch of {shape[0]}, got {tuple(self.factor.shape)}"
            )

    def output(self, output: HeadOutput, head: int, queries: QueryPositions) -> HeadOutput:  # noqa: ARG002
        return output * self._of(head).to(output)[..., None, None]

    def value_factor(self, head: int, batch: int) -> Float[Tensor, " batch"]:
        return self._of(head).detach().float().cpu().expand(batch)

    def _of(self, head: int) -> Float[Tensor, "*batch"]:
        i = head if self.heads is None else self.heads.index(head)
        return self.factor[..., i] if self.factor.dim() else self.factor


@dataclass(frozen=True, eq=False)
class StateEdit(Edit):
    """An edit that replaces a state at these positions, or at these places of the batch."""

    value: Float[Tensor, "#batch #n #d"]
    queries: Selected | Bool[Tensor, "batch n"]

    def check(self, shape: tuple[int, int, int, int]) -> None:  # noqa: ARG002
        """Raise ValueError: a site has heads."""
        raise ValueError('expected an edit of heads, got one of a state, which has names such as "decoder.2.residual"')

    def state(self, name: str, state: Tensor, positions: Callable[[], QueryPositions]) -> Tensor:
        """Return the state (batch, n, d) after the edit, or raise ValueError where its size is another."""
        shape = self.value.shape
        if self.value.numel() > 1 and (shape[1:] != state.shape[1:] or shape[0] not in (1, len(state))):
            raise ValueError(f"{name}: expected {tuple(state.shape)}, got {tuple(shape)}")
        value = self.value.to(state).expand_as(state)
        if isinstance(self.queries, slice) and self.queries == slice(0, None):
            return value
        chosen = self.queries if isinstance(self.queries, Tensor) else among(positions(), self.queries)
        return torch.where(chosen.to(state.device)[..., None], value, state)


def patch_state(value: Float[Tensor, "#batch n d"], queries: Places = None) -> StateEdit:
    """Return an edit that replaces a state by one of another run (activation patching; Meng 2022, section 2.1).

    with intervene({"decoder.2.residual": patch_state(clean.states["decoder.2.residual"], queries=3)}):
        model(**corrupted)

    States are named as in `Trace.states`; "STACK.I.residual_attention" is not edited, but what is added before it.

    Args:
        value: the state there, for texts that are padded alike; its batch is 1 or the same.
        queries: positions that are replaced, counted from the first token of each text, or a slice of them; None is
            all.

    Raises:
        ValueError: if value is not a floating-point tensor (batch, n, d), or, where it is applied, of another size.
    """
    check_tensors(value=value)
    check_axes("batch n d", value=value)
    return StateEdit(None, value, places_of("queries", queries))


def zero(queries: Places = None) -> StateEdit:
    """Return an edit that replaces a state by zeros, at these positions or, with None, at all: an ablation."""
    return StateEdit(None, torch.zeros(1, 1, 1), places_of("queries", queries))


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

"""Activation patching: cells of a run replaced by those of another, each in turn or all estimated from one gradient."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from viz_core.runtime.hooks import may_end
from viz_core.trace import Edit, Trace, head_outputs, intervene, record
from viz_core.trace.edits import HeadOutput, QueryPositions
from viz_core.trace.output_edits import StateEdit
from viz_core.trace.states import state_kinds
from viz_core.trace.verification import output_error, rounding
from viz_core.trace.weights import text_positions

CELLS = 16  # runs in one batch


@torch.no_grad()
def patch_sweep(
    model: nn.Module,
    clean: Mapping[str, Any],
    corrupted: Mapping[str, Any],
    metric: Callable[[Tensor], Tensor],
    what: str = "residual",
    *,
    stack: str | None = None,
) -> Float[Tensor, "layers columns"]:
    """Return the metric of the corrupted run with one cell taken from the clean run, for every cell.

    Activation patching, also causal tracing (Meng 2022, section 2.1; Zhang and Nanda 2024). Cells are a layer and a
    position, counted from the first token of each text; or a layer and a head, at all positions, with "heads" (of
    self-attention) and "cross-heads".

    Args:
        model: of this library, or of transformers after `instrument`.
        clean, corrupted: keyword inputs of the model; texts of the same lengths, padded alike.
        metric: a number of the logits (batch, n, vocab) of one run, such as the difference of two of them.
        what: "residual" (the stream after each layer), "attention", "cross" or "mlp" (what a part adds), "heads" or
            "cross-heads".
        stack: whose layers: "encoder", "decoder"; that with the output unless given.

    Raises:
        ValueError: in training mode; if the runs differ in size or padding, or nothing of this kind is recorded.
    """
    cells, rows = find_cells(model, clean, corrupted, what, stack), []
    batch, positions = len(cells.logits), cells.positions
    entries = find_entries(model, corrupted, cells) if batch == 1 else {}
    for name, value in cells.clean.items():
        row, entry = [], entries.get(name)
        for those in torch.arange(cells.columns).split(CELLS):
            may_end()
            if positions is None:
                edit: Edit = HeadsOfRun(None, value, those[:, None] == torch.arange(cells.columns))
            else:
                chosen = (positions == those[:, None, None]).flatten(0, 1).to(value.device)
                edit = CopiedState(None, value.repeat(len(those), 1, 1), chosen)
            copied = {} if entry in (None, name) else {entry: copied_state(len(those))}
            with intervene({**copied, name: edit}):
                row += metrics_of_copies(model, corrupted, metric, batch, len(those), entered=entry is not None)
        rows.append(torch.stack(row))
    return torch.stack(rows)


class Cells(NamedTuple):
    """What two runs have in the cells of a sweep, by state or, for heads, by site."""

    clean: dict[str, Tensor]
    corrupted: dict[str, Tensor]
    states: Mapping[str, Tensor]  # of the clean run
    logits: Tensor  # of the corrupted run
    positions: Int[Tensor, "batch n"] | None  # of each token in its text, -1 at padding; None for heads
    columns: int
    stream: tuple[str, ...]  # the residual stream after each layer


def find_cells(
    model: nn.Module, clean: Mapping[str, Any], corrupted: Mapping[str, Any], what: str, stack: str | None
) -> Cells:
    """Return what both runs have in each cell; arguments and errors are those of `patch_sweep`."""
    kind = {"heads": "self", "cross-heads": "cross"}.get(what)
    states = ("residual", "output", *({what} & state_kinds(True)))
    run, other, logits = recorded_runs(model, clean, corrupted, stack, values=kind is not None, states=states)
    stack = stack or next(reversed([*run.states]), "").partition(".")[0]

    def found(trace: Trace) -> dict[str, Tensor]:
        if kind:
            return {call.site: head_outputs(call) for call in trace if (call.stack, call.kind) == (stack, kind)}
        start, end = f"{stack}.", f".{what}"
        return {name: each for name, each in trace.states.items() if name.startswith(start) and name.endswith(end)}

    values, others = found(run), found(other)
    if not values:
        run, _, _ = recorded_runs(model, clean, corrupted, stack)
        kinds = ", ".join(sorted({name.rpartition(".")[2] for name in run.states})) or "none: see record(states=True)"
        raise ValueError(f"what: expected 'heads', 'cross-heads' or one of {kinds}, got {what!r}")
    state = next(iter(values.values()))
    stream = tuple(name for name in run.states if name.startswith(f"{stack}.") and name.endswith(".residual"))
    if kind:
        return Cells(values, others, run.states, logits, None, state.shape[1], stream)
    tokens = next(call for call in run if call.stack == stack).query_mask
    tokens = tokens if tokens.shape == state.shape[:2] else torch.ones(state.shape[:2], dtype=torch.bool)
    positions = text_positions(tokens, tokens.shape[1]).where(tokens, -1)
    return Cells(values, others, run.states, logits, positions, int(positions.max()) + 1, stream)


@dataclass(frozen=True, eq=False)
class CopiedState(StateEdit):
    """A state of one run that goes on as several copies, each with a value and places of its own."""

    def state(self, name: str, state: Tensor, positions: Callable[[], QueryPositions]) -> Tensor:
        assert isinstance(self.queries, Tensor)
        return super().state(name, state.repeat(len(self.queries) // len(state), 1, 1), positions)


def copied_state(copies: int) -> CopiedState:
    """Return an edit by which a run goes on as several copies of itself."""
    return CopiedState(None, torch.zeros(1, 1, 1), torch.zeros(copies, 1, dtype=torch.bool))


def find_entries(model: nn.Module, inputs: Mapping[str, Any], cells: Cells) -> dict[str, str]:
    """Return, by the name of each cell, the state in the stream after which its copies differ.

    What is before it is computed once. Empty unless, of two copies, the first comes out as the corrupted run, and the
    second, which takes the clean run's stream, as the clean one. They do not in a model that counts its texts in what
    enters it, as for attention to another stack, or that reads its input again in a later layer.
    """
    layers = [name.rpartition(".")[0] for name in cells.stream]
    entries = dict[str, str]()
    for name in cells.clean:
        layer = name.rpartition(".")[0]
        before = cells.stream[: layers.index(layer) + (name in cells.stream)] if layer in layers else ()
        entries |= {name: before[-1]} if before else {}
    if not entries:
        return {}
    entry = next(iter(entries.values()))
    state, outputs = cells.states[entry], [each for name, each in cells.states.items() if name.endswith(".output")]
    second = torch.tensor([[False], [True]]).expand(-1, state.shape[1])
    try:
        with intervene({entry: CopiedState(None, state, second)}):
            copies = logits_of(model, inputs)
        error = output_error(torch.cat((cells.logits, outputs[-1])), copies)
    except Exception:  # batches that do not fit: what else enters a layer is of one text
        return {}
    return entries if error is not None and error <= rounding(copies.dtype)[1] else {}


def recorded_runs(
    model: nn.Module,
    clean: Mapping[str, Any],
    corrupted: Mapping[str, Any],
    stack: str | None = None,
    *,
    values: bool = True,
    states: bool | Collection[str] = True,
) -> tuple[Trace, Trace, Tensor]:
    """Return the recordings of two runs, with values and states as of `record`, and the logits of the second.

    ValueError in training mode; if a layer is called again, which an edit would change too; if their texts differ in
    length or padding, in a stack if one is given.
    """
    if any(part.training for part in model.modules()):
        raise ValueError("model: expected evaluation mode, got training mode in a part, where runs differ: call eval()")
    with record(values=values, states=states) as run:
        logits_of(model, clean)
    with record(values=values, states=states) as other:
        logits = logits_of(model, corrupted)
    again = next((name for name in (*other.sites, *other.states) if "@" in name), None)
    if again:
        raise ValueError(f"model: expected layers that are called once each, got {again}")
    own = [[call for call in each if stack in (None, call.stack)] for each in (run, other)]
    masks = [[mask for call in calls for mask in (call.query_mask, call.key_mask)] for calls in own]
    if len(masks[0]) != len(masks[1]) or not all(map(torch.equal, *masks)):
        raise ValueError("clean and corrupted: expected texts of the same lengths, padded alike")
    return run, other, logits


def logits_of(model: nn.Module, inputs: Mapping[str, Any]) -> Tensor:
    """Return what a model returns for keyword inputs: its logits or last states, or the first of several outputs."""
    output = model(**inputs)
    output = getattr(output, "logits", getattr(output, "last_hidden_state", output))
    return output[0] if isinstance(output, tuple) else output


@dataclass(frozen=True, eq=False)
class HeadsOfRun(Edit):
    """Outputs of heads from another run: in each copy of the batch, those of the heads that are taken."""

    recorded: Float[Tensor, "batch heads queries v"]
    taken: Bool[Tensor, "copies heads"]

    def output(self, output: HeadOutput, head: int, queries: QueryPositions) -> HeadOutput:  # noqa: ARG002
        recorded = self.recorded[:, head].to(output).repeat(len(self.taken), 1, 1)
        taken = self.taken[:, head].repeat_interleave(len(self.recorded)).to(output.device)
        return torch.where(taken[:, None, None], recorded, output)


def metrics_of_copies(
    model: nn.Module,
    inputs: Mapping[str, Any],
    metric: Callable[[Tensor], Tensor],
    batch: int,
    copies: int,
    entered: bool = False,
) -> list[Tensor]:
    """Return the metric of each of several copies of these inputs, which run in one batch.

    Args:
        entered: whether an edit makes the copies within the model.
    """
    times = 1 if entered else copies
    repeated = {name: _repeated(given, batch, times) for name, given in inputs.items()}
    return [metric(logits).float().cpu() for logits in logits_of(model, repeated).split(batch)]


def _repeated(given: Any, batch: int, times: int) -> Any:
    if isinstance(given, Tensor):
        return given.repeat(times, *[1] * (given.dim() - 1)) if given.shape[:1] == (batch,) else given
    return given.select(torch.arange(batch).repeat(times)) if hasattr(given, "select") else given  # a decoder's state


class AttributionPatch(NamedTuple):
    """Estimated metrics, and how they compare with a true sweep."""

    grid: Float[Tensor, "layers columns"]
    sweep: Float[Tensor, "layers columns"] | None  # the metrics measured by `patch_sweep`
    rank_correlation: float | None  # of the two, -1 to 1 (Spearman)
    error: float | None  # root mean square of their difference


def attribution_patch(
    model: nn.Module,
    clean: Mapping[str, Any],
    corrupted: Mapping[str, Any],
    metric: Callable[[Tensor], Tensor],
    what: str = "residual",
    *,
    stack: str | None = None,
    check: bool = False,
) -> AttributionPatch:
    """Return an estimate of `patch_sweep` from two passes and a gradient: m + (a_clean - a_corrupted) . dm/da.

    m is the metric of the corrupted run and a what a cell holds there (Nanda 2023, "Attribution Patching"; Syed 2023,
    equation 2). It is the first term of a series: good for small changes, poor where a norm or a softmax saturates, as
    it often is for the residual stream of early layers.

    Args:
        model, clean, corrupted, what, stack: as in `patch_sweep`.
        metric: a differentiable number of the logits.
        check: also run the true sweep, and compare.

    Raises:
        ValueError: as `patch_sweep`; if the metric has no gradient.
    """
    with torch.no_grad():
        cells = find_cells(model, clean, corrupted, what, stack)
    shifts = {name: torch.zeros_like(value, requires_grad=True) for name, value in cells.corrupted.items()}
    edits: dict[str, Edit] = {
        name: _ShiftedHeads(None, shift) if cells.positions is None else _ShiftedState(None, shift, slice(0, None))
        for name, shift in shifts.items()
    }
    with torch.enable_grad(), intervene(edits):
        before = metric(logits_of(model, corrupted))
        if not before.requires_grad:
            raise ValueError("metric: expected a differentiable number of the logits, got one without a gradient")
        gradients = torch.autograd.grad(before, list(shifts.values()), allow_unused=True)
    grid = torch.zeros(len(shifts), cells.columns)
    for row, name, gradient in zip(grid, shifts, gradients, strict=True):
        if gradient is not None:
            change = ((cells.clean[name].float() - cells.corrupted[name].float()) * gradient.float()).cpu()
            columns = cells.positions
            if columns is None:
                columns = torch.arange(change.shape[1])[:, None].expand(change.shape[:-1])
            row.index_add_(0, columns[columns >= 0], change.sum(dim=-1)[columns >= 0])
    grid += before.detach().float().cpu()
    if not check:
        return AttributionPatch(grid, None, None, None)
    sweep = patch_sweep(model, clean, corrupted, metric, what, stack=stack)
    correlation = torch.corrcoef(torch.stack([_ranks(sweep), _ranks(grid)]))[0, 1]
    return AttributionPatch(grid, sweep, float(correlation), float((grid - sweep).square().mean().sqrt()))


def _ranks(values: Tensor) -> Float[Tensor, " values"]:
    """Return the rank of each number, the mean of theirs for equal ones."""
    _, places, counts = values.flatten().unique(return_inverse=True, return_counts=True)
    return (counts.cumsum(0) - (counts - 1) / 2)[places]


@dataclass(frozen=True, eq=False)
class _ShiftedState(StateEdit):
    def state(self, name: str, state: Tensor, positions: Callable[[], QueryPositions]) -> Tensor:  # noqa: ARG002
        return state + self.value


@dataclass(frozen=True, eq=False)
class _ShiftedHeads(Edit):
    shift: Float[Tensor, "batch heads queries v"]

    def output(self, output: HeadOutput, head: int, queries: QueryPositions) -> HeadOutput:  # noqa: ARG002
        return output + self.shift[:, head].to(output)

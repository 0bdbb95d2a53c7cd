"""Attribution patching: every cell of a patch sweep estimated from one gradient."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from viz_core.circuits.sweep import find_cells, logits_of, patch_sweep
from viz_core.trace import Edit, intervene
from viz_core.trace.edits import HeadOutput, QueryPositions
from viz_core.trace.output_edits import StateEdit


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

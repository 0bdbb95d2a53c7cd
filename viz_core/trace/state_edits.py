"""Edits of states: of the residual stream, and of what the parts of a layer add to it."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from viz_core.trace.arguments import check_axes, check_tensors
from viz_core.trace.edits import Edit, QueryPositions
from viz_core.trace.weight_edits import Places, Selected, among, places_of


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
        return torch.where(chosen[..., None], value, state)


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

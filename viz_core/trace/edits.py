"""Edits of heads: functions of a head's scores before the softmax, and of its output.

Positions of queries and keys are counted from the first token of each text, without its padding, also when a decoder
with a cache takes one step at a time.
"""

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeAlias, TypeGuard

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from viz_core.trace.arguments import is_whole

Heads: TypeAlias = int | Iterable[int] | None
Scores: TypeAlias = Float[Tensor, "batch rows keys"]
HeadOutput: TypeAlias = Float[Tensor, "batch rows v"]
QueryPositions: TypeAlias = Int[Tensor, "#batch rows"]


class Positions(NamedTuple):
    """Positions in each text, from 0 at its first token; -1 at padding."""

    queries: QueryPositions
    keys: Int[Tensor, "#batch keys"]


@dataclass(frozen=True, eq=False)
class Edit:
    """An edit of some heads of a call; this base class changes nothing.

    Raises:
        ValueError: if heads are empty, or one is not an integer from 0 on.
    """

    heads: tuple[int, ...] | None  # None: all of them

    changes_weights: ClassVar[bool] = False
    replaces_output: ClassVar[bool] = False  # whether the output no longer depends on the weights
    cuts_pairs: ClassVar[bool] = False  # whether it cuts pairs of query and key, and nothing else
    needs_softmax: ClassVar[bool] = False  # whether it changes scores in another way than to cut keys
    needs_positions: ClassVar[bool] = True

    def scores(self, scores: Scores, head: int, at: Positions) -> Scores:  # noqa: ARG002
        """Return a head's scores before the softmax, -inf at masked keys."""
        return scores

    def output(self, output: HeadOutput, head: int, queries: QueryPositions) -> HeadOutput:  # noqa: ARG002
        """Return the head's output, before the output projection."""
        return output

    def check(self, shape: tuple[int, int, int, int]) -> None:
        """Raise ValueError if the edit does not fit a call of this batch, heads, queries and keys."""
        if self.heads is not None and max(self.heads) >= shape[1]:
            raise ValueError(f"expected heads 0 to {shape[1] - 1}, got {self.heads}")

    def value_factor(self, head: int, batch: int) -> Float[Tensor, " batch"]:  # noqa: ARG002
        """Return what the edit multiplies each value of a head by; ValueError if its output is no sum over keys."""
        return torch.ones(batch)

    def __post_init__(self) -> None:
        if self.heads is not None and (not self.heads or any(not is_nonnegative(head) for head in self.heads)):
            raise ValueError(f"heads: expected numbers from 0 on, got {self.heads}")


@dataclass(frozen=True, eq=False)
class Edits:
    """All edits of one call, in order, and the positions of its queries and keys."""

    edits: tuple[Edit, ...]
    positions: Positions

    def of(self, head: int) -> tuple[Edit, ...]:
        """Return the edits of one head."""
        return tuple(edit for edit in self.edits if edit.heads is None or head in edit.heads)

    def edited_heads(self, num_heads: int) -> list[int]:
        """Return the heads that have an edit."""
        return [head for head in range(num_heads) if self.of(head)]

    def edit_scores(
        self, scores: Float[Tensor, "batch some_heads rows keys"], heads: Sequence[int], queries: slice
    ) -> Float[Tensor, "batch some_heads rows keys"]:
        """Return the scores of these heads and queries after all edits; the last keys may be left out."""
        at = Positions(self.positions.queries[:, queries], self.positions.keys[:, : scores.shape[-1]])
        edited = list(scores.unbind(dim=1))
        for i, head in enumerate(heads):
            for edit in self.of(head):
                edited[i] = edit.scores(edited[i], head, at)
        return torch.stack(edited, dim=1) if edited else scores

    def needs_weights(self, head: int) -> bool:
        """Whether a head's output depends on weights that its edits change."""
        return any(edit.changes_weights for edit in self.of(head)) and not self.replaces_output(head)

    def replaces_output(self, head: int) -> bool:
        """Whether a head's output no longer depends on its weights: its map is zeros."""
        return any(edit.replaces_output for edit in self.of(head))

    def edit_output(self, output: HeadOutput, head: int) -> HeadOutput:
        """Return a head's output after all edits."""
        for edit in self.of(head):
            output = edit.output(output, head, self.positions.queries)
        return output

    def value_factor(self, head: int, batch: int) -> Float[Tensor, " batch"]:
        """Return what the edits multiply each value of a head by."""
        factor = torch.ones(batch)
        for edit in self.of(head):
            factor = factor * edit.value_factor(head, batch)
        return factor


@dataclass(frozen=True, eq=False)
class Replacement(Edit):
    """A head whose output is replaced: its map is zeros."""

    changes_weights: ClassVar[bool] = True
    replaces_output: ClassVar[bool] = True

    def scores(self, scores: Scores, head: int, at: Positions) -> Scores:  # noqa: ARG002
        """Return scores that mask every key."""
        return torch.full_like(scores, -torch.inf)

    def value_factor(self, head: int, batch: int) -> Float[Tensor, " batch"]:  # noqa: ARG002
        """Raise ValueError: what replaces the output is not a sum over keys."""
        raise ValueError(f"expected heads whose output is a sum over keys; the output of head {head} was replaced")


def heads_tuple(heads: Heads) -> tuple[int, ...] | None:
    """Return heads as a tuple; None for all. ValueError unless they are integers from 0 on."""
    return None if heads is None else indices_of("heads", heads)


def indices_of(name: str, given: object) -> tuple[int, ...]:
    """Return one or several integers from 0 on, Python's, numpy's or a tensor's, as a tuple; else ValueError."""
    if isinstance(given, Tensor) and given.is_meta:
        raise ValueError(f"{name}: expected numbers from 0 on, got a tensor on the meta device, which has none")
    listed: object = given.tolist() if isinstance(given, Tensor | np.ndarray) else given
    several = tuple(listed) if isinstance(listed, Iterable) else (listed,)
    if not all(is_nonnegative(number) for number in several):
        raise ValueError(f"{name}: expected numbers from 0 on, got {given!r}")
    return tuple(operator.index(number) for number in several)


def is_nonnegative(number: object) -> TypeGuard[int]:
    """Whether it is an integer from 0 on."""
    return is_whole(number) and number >= 0  # type: ignore[operator]

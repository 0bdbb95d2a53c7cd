"""Edits of heads: functions of a head's scores before the softmax, and of its output.

Positions of queries and keys are those of the whole text, also when a decoder with a cache takes one step at a time.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias, TypeGuard

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from viz_core.trace.arguments import is_whole

Heads: TypeAlias = int | Iterable[int] | None
Scores: TypeAlias = Float[Tensor, "batch rows keys"]
HeadOutput: TypeAlias = Float[Tensor, "batch rows v"]


@dataclass(frozen=True, eq=False)
class Edit:
    """An edit of some heads of a call; this base class changes nothing.

    Raises:
        ValueError: if heads are empty, or one is no integer from 0 on.
    """

    heads: tuple[int, ...] | None  # None: all of them

    changes_weights: ClassVar[bool] = False
    replaces_output: ClassVar[bool] = False  # whether the output no longer depends on the weights

    def scores(self, scores: Scores, head: int, rows: Int[Tensor, "rows"]) -> Scores:  # noqa: ARG002
        """Return a head's scores before the softmax, -inf at masked keys; `rows` are the positions of the queries."""
        return scores

    def output(self, output: HeadOutput, head: int, rows: Int[Tensor, "rows"]) -> HeadOutput:  # noqa: ARG002
        """Return the head's output, before the output projection."""
        return output

    def __post_init__(self) -> None:
        if self.heads is not None and (not self.heads or any(not is_nonnegative(head) for head in self.heads)):
            raise ValueError(f"heads: expected numbers from 0 on, got {self.heads}")


@dataclass(frozen=True, eq=False)
class Edits:
    """All edits of one call, in order, and the position of its first query."""

    edits: tuple[Edit, ...]
    start: int

    def of(self, head: int) -> tuple[Edit, ...]:
        """Return the edits of one head."""
        return tuple(edit for edit in self.edits if edit.heads is None or head in edit.heads)

    def edited_heads(self, num_heads: int) -> list[int]:
        """Return the heads that have an edit."""
        return [head for head in range(num_heads) if self.of(head)]

    def edit_scores(
        self,
        scores: Float[Tensor, "batch some_heads rows keys"],
        heads: Sequence[int],
        queries: slice,
        num_queries: int,
    ) -> Float[Tensor, "batch some_heads rows keys"]:
        """Return the scores of these heads and queries after all edits."""
        rows = self.rows(queries, num_queries, scores.device)
        edited = list(scores.unbind(dim=1))
        for i, head in enumerate(heads):
            for edit in self.of(head):
                edited[i] = edit.scores(edited[i], head, rows)
        return torch.stack(edited, dim=1) if edited else scores

    def needs_weights(self, head: int) -> bool:
        """Whether a head's output depends on weights that its edits change."""
        edits = self.of(head)
        return any(edit.changes_weights for edit in edits) and not any(edit.replaces_output for edit in edits)

    def edit_output(self, output: HeadOutput, head: int) -> HeadOutput:
        """Return a head's output after all edits."""
        rows = self.rows(slice(None), output.shape[1], output.device)
        for edit in self.of(head):
            output = edit.output(output, head, rows)
        return output

    def rows(self, queries: slice, num_queries: int, device: torch.device) -> Int[Tensor, "rows"]:
        """Return the positions of these queries."""
        return torch.arange(num_queries, device=device)[queries] + self.start


@dataclass(frozen=True, eq=False)
class Replacement(Edit):
    """A head whose output is replaced: its map is zeros."""

    changes_weights: ClassVar[bool] = True
    replaces_output: ClassVar[bool] = True

    def scores(self, scores: Scores, head: int, rows: Int[Tensor, "rows"]) -> Scores:  # noqa: ARG002
        """Return scores that mask every key."""
        return torch.full_like(scores, -torch.inf)


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

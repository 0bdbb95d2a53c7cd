"""An edit of a head: what it does to the scores before the softmax, and to what the head writes; and all of one call's.

Positions of queries and keys are those of the whole text, also where a decoder with a cache takes one step at a time.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, SupportsIndex, TypeAlias, TypeGuard

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from viz_core.trace.arguments import is_whole

Heads: TypeAlias = int | Iterable[int] | None
Scores: TypeAlias = Float[Tensor, "batch rows keys"]
Written: TypeAlias = Float[Tensor, "batch rows v"]


@dataclass(frozen=True, eq=False)
class Edit:
    """What is done to some heads of a call; as it stands here, nothing.

    Raises:
        ValueError: if no head is named, or one is no number from 0 on.
    """

    heads: tuple[int, ...] | None  # None: all of them

    weighs: ClassVar[bool] = False  # whether weights change
    replaces: ClassVar[bool] = False  # whether what is written no longer depends on them

    def scores(self, scores: Scores, head: int, rows: Int[Tensor, "rows"]) -> Scores:  # noqa: ARG002
        """A head's scores before the softmax, hidden keys at -inf; `rows` says where each query stands."""
        return scores

    def output(self, output: Written, head: int, rows: Int[Tensor, "rows"]) -> Written:  # noqa: ARG002
        """What the head writes before the output projection."""
        return output

    def __post_init__(self) -> None:
        if self.heads is not None and (not self.heads or any(not is_nonnegative(head) for head in self.heads)):
            raise ValueError(f"heads: expected numbers from 0 on, got {self.heads}")


@dataclass(frozen=True, eq=False)
class Edits:
    """All edits of one call, in order, and where its first query stands."""

    edits: tuple[Edit, ...]
    start: int

    def of(self, head: int) -> tuple[Edit, ...]:
        """Those of one head."""
        return tuple(edit for edit in self.edits if edit.heads is None or head in edit.heads)

    def named(self, num_heads: int) -> list[int]:
        """The heads, of so many, that anything is done to."""
        return [head for head in range(num_heads) if self.of(head)]

    def reweighed(
        self,
        scores: Float[Tensor, "batch some_heads rows keys"],
        heads: Sequence[int],
        queries: slice,
        num_queries: int,
    ) -> Float[Tensor, "batch some_heads rows keys"]:
        """The scores of these heads and queries after all edits; those of other heads as they are."""
        rows = self.rows(queries, num_queries, scores.device)
        found = list(scores.unbind(dim=1))
        for place, head in enumerate(heads):
            for edit in self.of(head):
                found[place] = edit.scores(found[place], head, rows)
        return torch.stack(found, dim=1) if found else scores

    def reads_weights(self, head: int) -> bool:
        """Whether what a head writes comes of weights that its edits change."""
        edits = self.of(head)
        return any(edit.weighs for edit in edits) and not any(edit.replaces for edit in edits)

    def written(self, output: Written, head: int) -> Written:
        """What a head writes after all edits."""
        rows = self.rows(slice(None), output.shape[1], output.device)
        for edit in self.of(head):
            output = edit.output(output, head, rows)
        return output

    def rows(self, queries: slice, num_queries: int, device: torch.device) -> Int[Tensor, "rows"]:
        """Where these of so many queries stand."""
        return torch.arange(num_queries, device=device)[queries] + self.start


@dataclass(frozen=True, eq=False)
class Replacement(Edit):
    """A head whose output comes from elsewhere looks at nothing."""

    weighs: ClassVar[bool] = True
    replaces: ClassVar[bool] = True

    def scores(self, scores: Scores, head: int, rows: Int[Tensor, "rows"]) -> Scores:  # noqa: ARG002
        """No key is seen."""
        return torch.full_like(scores, -torch.inf)


def heads_tuple(heads: Heads) -> tuple[int, ...] | None:
    """The heads that are meant; None for all.

    Raises:
        ValueError: if that is neither a number, nor numbers, from 0 on.
    """
    return None if heads is None else indices_of("heads", heads)


def indices_of(name: str, given: object) -> tuple[int, ...]:
    """Numbers from 0 on, of one or of several: Python's, numpy's, or whole tensors'.

    Raises:
        ValueError: naming what came.
    """
    if isinstance(given, Tensor) and given.is_meta:
        raise ValueError(f"{name}: expected numbers from 0 on, got a tensor on the meta device, which has none")
    listed: object = given.tolist() if isinstance(given, Tensor | np.ndarray) else given
    several = tuple(listed) if isinstance(listed, Iterable) else (listed,)
    if not all(is_nonnegative(number) for number in several):
        raise ValueError(f"{name}: expected numbers from 0 on, got {given!r}")
    return tuple(operator.index(number) for number in several)


def is_nonnegative(number: object) -> TypeGuard[SupportsIndex]:
    """Whether it is a number from 0 on."""
    return is_whole(number) and number >= 0  # type: ignore[operator]

"""Edits of attention weights: uniform, sharpened, a given pattern, pairs or distant keys cut."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from viz_core.trace.arguments import check_axes, check_positive_number, check_tensors, check_whole
from viz_core.trace.edits import Edit, Heads, Positions, Scores, heads_tuple, indices_of, is_nonnegative
from viz_core.trace.weights import is_masked

Places: TypeAlias = int | slice | Iterable[int] | None
Selected: TypeAlias = slice | tuple[int, ...]

_STEPS_BACK = {"diagonal": 0, "previous": 1, "first": None}


def uniform(heads: Heads = None) -> Edit:
    """Return an edit that gives all allowed keys the same weight."""
    return _Rescored(heads_tuple(heads), _equal)  # no lambda, which could not be pickled with a recording


def sharpen(heads: Heads, temperature: float) -> Edit:
    """Return an edit to softmax(scores / temperature): below 1 sharper, above 1 flatter.

    Raises:
        ValueError: if the temperature is not positive.
    """
    check_positive_number(temperature=temperature)
    return _Rescored(heads_tuple(heads), partial(_divided, float(temperature)))


def pattern(heads: Heads, what: str | Float[Tensor, "queries keys"]) -> Edit:
    """Return an edit to a fixed pattern: "diagonal" (key i), "previous" (key i - 1), "first" (key 0), or a matrix.

    Positions count from the first token of each text, without its padding.

    Masked keys stay masked, and the rest of the row is scaled to sum to 1; a row without any weight left is zeros. The
    first query's previous key is itself.

    Args:
        what: a name, or a matrix of weights, a row for each query. Keys past its last column get no weight; queries
            past its last row are unchanged.

    Raises:
        ValueError: if there is no such pattern, or a row of the matrix is neither weights that sum to 1 nor zeros.
    """
    if isinstance(what, str):
        if what not in _STEPS_BACK:
            raise ValueError(f"what: expected one of {', '.join(_STEPS_BACK)}, or a matrix, got {what!r}")
        return _Rescored(heads_tuple(heads), partial(_one_key, _STEPS_BACK[what]))
    weights = checked_weights(what)
    check_axes("queries keys", what=weights)
    return GivenWeights(heads_tuple(heads), weights[None, None])


def knock_out(heads: Heads, *, query: Places = None, key: Places = None) -> Edit:
    """Return an edit that cuts pairs of query and key: their scores are -inf before the softmax (Geva 2023, section 5).

    A key of linear attention behind a short convolution is made of a few tokens: cutting it in all heads from all later
    queries does not hide its token, and is refused there.

    Args:
        heads: None cuts them in all heads, as Geva does.
        query, key: positions counted from the first token of each text, or a slice of them; None is all. Each query
            named is cut from each key.

    Raises:
        ValueError: if a number is below 0.
    """
    rows, columns = places_of("query", query), places_of("key", key)
    return _Cut(heads_tuple(heads), partial(_is_named, rows, columns))


def window(heads: Heads, size: int, *, first: int = 0) -> Edit:
    """Return an edit that masks keys `size` or more steps from the query, except the first ones (Xiao 2023, figure 1).

    A short convolution before linear attention reads a few tokens further than the window.

    Args:
        heads: None is all of them.
        size: keys that a query of a decoder attends to, itself the last of them.
        first: number of first keys that no query loses: the attention sinks.

    Raises:
        ValueError: if size is below 1 or first below 0.
    """
    check_whole(size=size)
    check_whole(0, first=first)
    return _Cut(heads_tuple(heads), partial(_is_far, size, first))


def _equal(scores: Scores, _: Positions) -> Scores:
    return torch.where(is_masked(scores), -torch.inf, 0.0)


def _divided(temperature: float, scores: Scores, _: Positions) -> Scores:
    return scores / temperature


def _one_key(back: int | None, scores: Scores, at: Positions) -> Scores:
    target = torch.zeros_like(at.queries) if back is None else (at.queries - back).clamp(min=0)
    return torch.where(~is_masked(scores) & (at.keys[:, None] == target[..., None]), 0.0, -torch.inf)


def _is_named(rows: Selected, columns: Selected, at: Positions) -> Bool[Tensor, "#batch #rows #keys"]:
    return among(at.queries, rows)[..., None] & among(at.keys, columns)[:, None]


def _is_far(size: int, first: int, at: Positions) -> Bool[Tensor, "#batch rows keys"]:
    keys = at.keys[:, None]
    return ((at.queries[..., None] - keys).abs() >= size) & (keys >= first)


@dataclass(frozen=True, eq=False)
class _Rescored(Edit):
    changes_weights: ClassVar[bool] = True
    needs_softmax: ClassVar[bool] = True
    rescore: Callable[[Scores, Positions], Scores]

    def scores(self, scores: Scores, head: int, at: Positions) -> Scores:  # noqa: ARG002
        return self.rescore(scores, at)


@dataclass(frozen=True, eq=False)
class _Cut(Edit):
    changes_weights: ClassVar[bool] = True
    cuts_pairs: ClassVar[bool] = True
    is_cut: Callable[[Positions], Bool[Tensor, "#batch #rows #keys"]]

    def scores(self, scores: Scores, head: int, at: Positions) -> Scores:  # noqa: ARG002
        return scores.masked_fill(self.is_cut(at), -torch.inf)


@dataclass(frozen=True, eq=False)
class GivenWeights(Edit):
    """Heads with given weights: their logarithms as scores, and -inf at masked keys."""

    changes_weights: ClassVar[bool] = True
    needs_softmax: ClassVar[bool] = True
    # a matrix for each head and batch row, or one for all, without padding. Queries past its last row, and padding, are
    # unchanged.
    weights: Float[Tensor, "#batch #heads queries keys"]

    def check(self, shape: tuple[int, int, int, int]) -> None:
        """Raise ValueError unless there are weights for each head and row of the batch."""
        super().check(shape)
        batch, heads, rows, columns = self.weights.shape
        if batch not in (1, shape[0]) or (self.heads is None and heads not in (1, shape[1])) or not rows * columns:
            raise ValueError(
                f"expected weights of a batch of 1 or {shape[0]}, for {shape[1]} heads, got {tuple(self.weights.shape)}"
            )

    def scores(self, scores: Scores, head: int, at: Positions) -> Scores:
        """Return scores whose softmax is the given weights, scaled to sum to 1 over the allowed keys."""
        given = self.weights[:, head if self.weights.shape[1] > 1 else 0].to(scores)
        rows, columns = (each.clamp(0, size - 1) for each, size in zip(at, given.shape[1:], strict=True))
        batch = max(len(given), len(rows), len(columns))
        taken = given.expand(batch, -1, -1).gather(1, rows[..., None].expand(batch, -1, given.shape[2]))
        taken = taken.gather(2, columns[:, None].expand(batch, taken.shape[1], -1))
        has_column = (at.keys == columns)[:, None]
        logs = torch.where(has_column & ~is_masked(scores), taken.log(), -torch.inf)
        return torch.where((at.queries == rows)[..., None], logs, scores)


def checked_weights(weights: Float[Tensor, "*batch queries keys"]) -> Float[Tensor, "*batch queries keys"]:
    """Return the weights. ValueError unless there are some, each is at least 0, and each row sums to 1 or 0."""
    check_tensors(weights=weights)
    check_axes("... queries keys", weights=weights)
    sums = weights.sum(dim=-1)
    whole = ((sums - 1).abs() < 1e-3) | (sums == 0)
    if not weights.numel() or not bool((weights >= 0).all()) or not bool(whole.all()):
        raise ValueError(f"weights: expected rows that sum to 1, none below 0, got sums {sums.flatten()[:4].tolist()}")
    return weights


def places_of(name: str, positions: Places) -> Selected:
    """Return integers from 0 on as a tuple, or a slice of them with start and step. ValueError if they are others."""
    if positions is None:
        return slice(0, None)
    if isinstance(positions, slice):
        numbers = [each for each in (positions.start, positions.stop, positions.step) if each is not None]
        if all(is_nonnegative(number) for number in numbers) and positions.step != 0:
            return slice(positions.start or 0, positions.stop, positions.step or 1)
        raise ValueError(f"{name}: expected numbers from 0 on, or a slice of them, got {positions}")
    return indices_of(name, positions)


def among(numbers: Int[Tensor, "*n"], positions: Selected) -> Bool[Tensor, "*n"]:
    """Whether each number is one of these positions."""
    if isinstance(positions, tuple):
        return torch.isin(numbers, torch.tensor(positions, device=numbers.device, dtype=numbers.dtype))
    inside = (numbers >= positions.start) & ((numbers - positions.start) % (positions.step or 1) == 0)
    return inside if positions.stop is None else inside & (numbers < positions.stop)

"""Heads that look elsewhere: at all keys alike, more or less sharply, where they are told, or not at some."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from viz_core.trace.arguments import check_axes, check_positive_number, check_tensors, check_whole
from viz_core.trace.edits import Edit, Heads, Scores, heads_tuple, indices_of, is_nonnegative

Places: TypeAlias = int | slice | Iterable[int] | None

_HIDDEN = -6e4  # additive masks hide by the least number of a type: half precision's is -65,504


def uniform(heads: Heads = None) -> Edit:
    """Heads that look at all keys they may see alike.

    Raises:
        ValueError: if a head is no number from 0 on.
    """
    return _Uniform(heads_tuple(heads))


def sharpen(heads: Heads, temperature: float) -> Edit:
    """softmax(scores / temperature): below 1 sharper, above 1 flatter.

    Raises:
        ValueError: if the temperature is not positive.
    """
    check_positive_number(temperature=temperature)
    return _Sharpen(heads_tuple(heads), float(temperature))


def pattern(heads: Heads, what: str | Float[Tensor, "queries keys"]) -> Edit:
    """Heads that look where they are told: "diagonal" (key i), "previous" (key i - 1), "first" (key 0), or a matrix.

    What a mask hides stays hidden, and the rest of the row is scaled to sum to 1; a row of which nothing is left is
    zeros, as one whose key is not there. The first query's previous key is itself.

    Args:
        what: a name, or weights, a row a query. Keys past its last column get none; queries past its last row look
            where they did.

    Raises:
        ValueError: if there is no such pattern, or a row of the matrix is neither weights that sum to 1 nor zeros.
    """
    if isinstance(what, str):
        if what not in _STEPS_BACK:
            raise ValueError(f"what: expected one of {', '.join(_STEPS_BACK)}, or a matrix, got {what!r}")
        return _Look(heads_tuple(heads), what)
    weights = checked_weights(what)
    check_axes("queries keys", what=weights)
    return GivenWeights(heads_tuple(heads), weights[None, None])


def knock_out(heads: Heads, *, query: Places = None, key: Places = None) -> Edit:
    """Pairs of query and key cut: their scores are -inf before the softmax (Geva 2023, section 5).

    Args:
        heads: None cuts them in all heads, as Geva does.
        query, key: numbers counted from 0, or a slice of them; None is all. Each query named is cut from each key.

    Raises:
        ValueError: if a number is below 0.
    """
    return _KnockOut(heads_tuple(heads), *(_places(name, each) for name, each in (("query", query), ("key", key))))


def window(heads: Heads, size: int, *, first: int = 0) -> Edit:
    """Heads that see no key `size` or more steps from the query, but for the first ones of all (Xiao 2023, figure 1).

    Args:
        heads: None is all of them.
        size: keys that a query of a decoder sees, itself the last of them.
        first: so many keys stay in sight of every query: the attention sinks.

    Raises:
        ValueError: if size is below 1 or first below 0.
    """
    check_whole(size=size)
    check_whole(0, first=first)
    return _Window(heads_tuple(heads), size, first)


@dataclass(frozen=True, eq=False)
class _Uniform(Edit):
    weighs: ClassVar[bool] = True

    def scores(self, scores: Scores, head: int, rows: Int[Tensor, "rows"]) -> Scores:  # noqa: ARG002
        return torch.where(scores > _HIDDEN, 0.0, -torch.inf)


@dataclass(frozen=True, eq=False)
class _Sharpen(Edit):
    weighs: ClassVar[bool] = True
    temperature: float

    def scores(self, scores: Scores, head: int, rows: Int[Tensor, "rows"]) -> Scores:  # noqa: ARG002
        return scores / self.temperature


_STEPS_BACK = {"diagonal": 0, "previous": 1, "first": None}


@dataclass(frozen=True, eq=False)
class _Look(Edit):
    weighs: ClassVar[bool] = True
    what: str

    def scores(self, scores: Scores, head: int, rows: Int[Tensor, "rows"]) -> Scores:  # noqa: ARG002
        back, keys = _STEPS_BACK[self.what], torch.arange(scores.shape[-1], device=scores.device)
        there = torch.zeros_like(rows) if back is None else (rows - back).clamp(min=0)
        return torch.where((scores > _HIDDEN) & (keys == there[:, None]), 0.0, -torch.inf)


@dataclass(frozen=True, eq=False)
class GivenWeights(Edit):
    """Heads whose weights are given: their logarithms as scores, and -inf where a mask hides.

    Attributes:
        weights: a matrix for each head and batch row, or one for all. Queries past its last row look where they did.
    """

    weighs: ClassVar[bool] = True
    weights: Float[Tensor, "#batch #heads queries keys"]

    def scores(self, scores: Scores, head: int, rows: Int[Tensor, "rows"]) -> Scores:
        """Scores whose softmax is the weights given, scaled to sum to 1 over the keys that may be seen."""
        given = self.weights[:, head if self.weights.shape[1] > 1 else 0].to(scores)
        known = rows < given.shape[1]
        told = torch.full_like(scores, -torch.inf)
        width = min(given.shape[2], scores.shape[-1])
        told[..., :width] = given[:, rows.clamp(max=given.shape[1] - 1), :width].log()
        return torch.where(known[:, None], torch.where(scores > _HIDDEN, told, -torch.inf), scores)


@dataclass(frozen=True, eq=False)
class _KnockOut(Edit):
    weighs: ClassVar[bool] = True
    query: slice | tuple[int, ...]
    key: slice | tuple[int, ...]

    def scores(self, scores: Scores, head: int, rows: Int[Tensor, "rows"]) -> Scores:  # noqa: ARG002
        keys = torch.arange(scores.shape[-1], device=scores.device)
        cut = _among(rows, self.query)[:, None] & _among(keys, self.key)
        return scores.masked_fill(cut, -torch.inf)


@dataclass(frozen=True, eq=False)
class _Window(Edit):
    weighs: ClassVar[bool] = True
    size: int
    first: int

    def scores(self, scores: Scores, head: int, rows: Int[Tensor, "rows"]) -> Scores:  # noqa: ARG002
        keys = torch.arange(scores.shape[-1], device=scores.device)
        far = (rows[:, None] - keys).abs() >= self.size
        return scores.masked_fill(far & (keys >= self.first), -torch.inf)


def checked_weights(weights: Float[Tensor, "*batch queries keys"]) -> Float[Tensor, "*batch queries keys"]:
    """Weights as they came.

    Raises:
        ValueError: unless they are at least 0 and each row sums to 1 or 0, and there is one.
    """
    check_tensors(weights=weights)
    check_axes("... queries keys", weights=weights)
    sums = weights.sum(dim=-1)
    whole = ((sums - 1).abs() < 1e-3) | (sums == 0)
    if not weights.numel() or not bool((weights >= 0).all()) or not bool(whole.all()):
        raise ValueError(f"weights: expected rows that sum to 1, none below 0, got sums {sums.flatten()[:4].tolist()}")
    return weights


def _places(name: str, places: Places) -> slice | tuple[int, ...]:
    """Numbers from 0 on, or a slice of them that needs no end to count from."""
    if places is None:
        return slice(0, None)
    if isinstance(places, slice):
        numbers = [number for number in (places.start, places.stop) if number is not None]
        if all(is_nonnegative(number) for number in numbers) and places.step != 0 and is_nonnegative(places.step or 1):
            return slice(places.start or 0, places.stop, places.step or 1)
        raise ValueError(f"{name}: expected numbers from 0 on, or a slice of them, got {places}")
    return indices_of(name, places)


def _among(numbers: Int[Tensor, "n"], places: slice | tuple[int, ...]) -> Tensor:
    if isinstance(places, tuple):
        return torch.isin(numbers, torch.tensor(places, device=numbers.device, dtype=numbers.dtype))
    inside = (numbers >= places.start) & ((numbers - places.start) % (places.step or 1) == 0)
    return inside if places.stop is None else inside & (numbers < places.stop)

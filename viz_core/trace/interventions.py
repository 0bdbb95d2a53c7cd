"""What can be done to a head to see what it causes: switch it off, tell it where to look, cut one look.

Each edit is a small value that changes a head's scores before the softmax, or what it writes; `intervene` puts it where
the attention of a model happens. Positions of queries and keys are those of the whole text, also where a decoder with
a cache takes one step at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

Heads: TypeAlias = int | Iterable[int] | None
Places: TypeAlias = int | slice | Iterable[int] | None
Scores: TypeAlias = Float[Tensor, "batch rows keys"]
Written: TypeAlias = Float[Tensor, "batch rows v"]

_HIDDEN = -6e4  # additive masks hide by the least number of a type: half precision's is -65,504


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
        if self.heads is not None and (not self.heads or any(not _is_place(head) for head in self.heads)):
            raise ValueError(f"heads: expected numbers from 0 on, got {self.heads}")


def off(*heads: int) -> Edit:
    """Heads that write nothing: the gate of Michel 2019, equation 1, at 0. Their maps are zeros.

    The same as zeroing their columns of the output projection.

    Raises:
        ValueError: if no head is named, or one is no number from 0 on.
    """
    return _Off(heads)


def switched_off(heads: Iterable[tuple[str, int]]) -> dict[str, Edit]:
    """For `intervene`: these heads off, each a site and a number.

    Raises:
        ValueError: if a number is below 0.
    """
    sites: dict[str, list[int]] = {}
    for site, head in heads:
        sites.setdefault(site, []).append(head)
    return {site: off(*those) for site, those in sites.items()}


def gate(heads: Heads, factor: float | Tensor) -> Edit:
    """What heads write, times a factor: xi_h Att_h (Michel 2019, equation 1); maps stay what they are.

    Args:
        factor: a number, or a tensor (named heads,) or (batch, named heads); gradients reach it.

    Raises:
        ValueError: if a head is no number from 0 on.
    """
    return _Gate(_heads(heads), torch.as_tensor(factor))


def mean(heads: Heads, of: Float[Tensor, "all_heads v"]) -> Edit:
    """Heads that write what they write on average, whatever they read. Their maps are zeros.

    Args:
        of: the mean of each head's output over a reference set, a row a head: `mean_outputs` of a recording.

    Raises:
        ValueError: if `of` has not a row for each head that is named.
    """
    chosen = _heads(heads)
    if of.dim() != 2 or (chosen is not None and max(chosen, default=0) >= len(of)):
        raise ValueError(f"of: expected a row for each of heads {chosen}, got shape {tuple(of.shape)}")
    return _Mean(chosen, of)


def uniform(heads: Heads = None) -> Edit:
    """Heads that look at all keys they may see alike.

    Raises:
        ValueError: if a head is no number from 0 on.
    """
    return _Uniform(_heads(heads))


def sharpen(heads: Heads, temperature: float) -> Edit:
    """softmax(scores / temperature): below 1 sharper, above 1 flatter.

    Raises:
        ValueError: if the temperature is not positive.
    """
    if not temperature > 0:
        raise ValueError(f"temperature: expected a positive number, got {temperature}")
    return _Sharpen(_heads(heads), float(temperature))


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
        return _Look(_heads(heads), what)
    return _Weights(_heads(heads), checked_weights(what)[None, None])


def knock_out(heads: Heads, *, query: Places = None, key: Places = None) -> Edit:
    """Pairs of query and key cut: their scores are -inf before the softmax (Geva 2023, section 5).

    Args:
        heads: None cuts them in all heads, as Geva does.
        query, key: numbers counted from 0, or a slice of them; None is all. Each query named is cut from each key.

    Raises:
        ValueError: if a number is below 0.
    """
    return _KnockOut(_heads(heads), *(_places(name, each) for name, each in (("query", query), ("key", key))))


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


class _Off(Replacement):
    def output(self, output: Written, head: int, rows: Int[Tensor, "rows"]) -> Written:  # noqa: ARG002
        return torch.zeros_like(output)


@dataclass(frozen=True, eq=False)
class _Mean(Replacement):
    means: Float[Tensor, "heads v"]

    def output(self, output: Written, head: int, rows: Int[Tensor, "rows"]) -> Written:  # noqa: ARG002
        return self.means[head].to(output).expand_as(output)


@dataclass(frozen=True, eq=False)
class _Gate(Edit):
    factor: Tensor

    def output(self, output: Written, head: int, rows: Int[Tensor, "rows"]) -> Written:  # noqa: ARG002
        place = head if self.heads is None else self.heads.index(head)
        factor = self.factor[..., min(place, self.factor.shape[-1] - 1)] if self.factor.dim() else self.factor
        return output * factor.to(output)[..., None, None]


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
class _Weights(Edit):
    weighs: ClassVar[bool] = True
    weights: Float[Tensor, "#batch #heads queries keys"]

    def scores(self, scores: Scores, head: int, rows: Int[Tensor, "rows"]) -> Scores:
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


def checked_weights(weights: Float[Tensor, "*batch queries keys"]) -> Float[Tensor, "*batch queries keys"]:
    """Weights as they came.

    Raises:
        ValueError: unless they are at least 0 and each row sums to 1 or 0, and there is one.
    """
    sums = weights.sum(dim=-1)
    whole = ((sums - 1).abs() < 1e-3) | (sums == 0)
    if not weights.numel() or not bool((weights >= 0).all()) or not bool(whole.all()):
        raise ValueError(f"weights: expected rows that sum to 1, none below 0, got sums {sums.flatten()[:4].tolist()}")
    return weights


def _heads(heads: Heads) -> tuple[int, ...] | None:
    return heads if heads is None else (heads,) if isinstance(heads, int) else tuple(heads)


def _is_place(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0


def _places(name: str, places: Places) -> slice | tuple[int, ...]:
    """Numbers from 0 on, or a slice of them that needs no end to count from."""
    if places is None:
        return slice(0, None)
    if isinstance(places, slice):
        numbers = [number for number in (places.start, places.stop) if number is not None]
        found: slice | tuple[int, ...] = slice(places.start or 0, places.stop, places.step or 1)
        if (places.step or 1) < 1:
            numbers.append(-1)
    else:
        found = (places,) if isinstance(places, int) else tuple(places)
        numbers = list(found)
    if not all(_is_place(number) for number in numbers):
        raise ValueError(f"{name}: expected numbers from 0 on, or a slice of them, got {places}")
    return found


def _among(numbers: Int[Tensor, "n"], places: slice | tuple[int, ...]) -> Tensor:
    if isinstance(places, tuple):
        return torch.isin(numbers, torch.tensor(places, device=numbers.device, dtype=numbers.dtype))
    inside = (numbers >= places.start) & ((numbers - places.start) % (places.step or 1) == 0)
    return inside if places.stop is None else inside & (numbers < places.stop)

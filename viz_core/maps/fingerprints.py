"""What the heads of a layer do, in a few numbers each and a thumbnail, without ever holding a whole long map."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.maps.distance import check_tokens, patch_distances
from viz_core.maps.measures import attention_entropy
from viz_core.maps.residuals import row_error
from viz_core.runtime.interruption import may_end
from viz_core.runtime.parallel import side_by_side
from viz_core.trace import AttentionCall
from viz_core.trace.thumbnail import max_pooled

# A block of at most so many weights is measured at a time: 1 MB.
_BLOCK_WEIGHTS = 2**18


@dataclass(frozen=True)
class Fingerprint:
    """The measures of one head; None where one means nothing for these maps, or is not known.

    All but the last two are measured on the map itself, as means over queries.

    Attributes:
        entropy: bits (`attention_entropy`).
        diagonal: weight of a token on itself (`diagonal_mass`), 0 to 1; as the next two,
            for maps of a sequence on itself.
        previous: weight on the token before (`offset_mass` at -1).
        next: weight on the token after (`offset_mass` at 1).
        first: weight on the first key (`key_mass`); of a picture, where that is no patch.
        separator: weight on keys that separate or end (`key_mass`).
        information: bits that a query tells about its key (`query_information`); for maps
            between two sequences.
        distance: how far a patch looks over the picture, in patches (`mean_attention_distance`).
        written: 1 - alignment error rate of the head for the word a step writes (`alignment_error_rate`), as
            measured for its model on sentences that people aligned; for cross-attention.
        read: the same for the word a step has read.
    """

    entropy: float
    diagonal: float | None
    previous: float | None
    next: float | None
    first: float | None
    separator: float | None
    information: float | None
    distance: float | None = None
    written: float | None = None
    read: float | None = None


@dataclass(frozen=True)
class Patches:
    """Where tokens lie on a picture: special tokens first, then patches row by row."""

    grid: tuple[int, int]
    num_special: int

    @cached_property
    def distances(self) -> Float[Tensor, "patches patches"]:
        """How far all patches are from each other, in patches."""
        return patch_distances(self.grid, (1, 1))


MEASURES = tuple(Fingerprint.__dataclass_fields__)


@dataclass(frozen=True)
class LayerMeasures:
    """The heads of one layer: a fingerprint and an overview each.

    Attributes:
        fingerprints: one for each head.
        overview: the largest weights, as in `AttentionCall.overview`.
        row_error: by how much any row misses a sum of 1 (`viz_core.maps.residuals.row_error`).
    """

    fingerprints: tuple[Fingerprint, ...]
    overview: Float[Tensor, "heads rows columns"]
    row_error: float


def measure_layer(
    call: AttentionCall,
    row: int = 0,
    *,
    on_itself: bool = True,
    separators: Sequence[int] = (),
    patches: Patches | None = None,
    size: int = 64,
) -> LayerMeasures:
    """Measure every head of a call, block of queries by block of queries.

    Args:
        row: which row of the batch.
        on_itself: whether queries and keys are one sequence: then diagonal, previous and next are
            measured, else information.
        separators: keys that separate or end.
        patches: where the tokens lie on a picture: then how far heads look is measured, for "previous" and "next"
            mean nothing where rows of patches follow each other.
        size: of the overview, at most so many on a side.

    Raises:
        ValueError: if there are no queries or keys, `on_itself` with unequal numbers of them, or other numbers of
            tokens than the picture has.
    """
    queries, keys = call.num_queries, call.num_keys
    if not queries or not keys or (on_itself and queries != keys):
        expected = "as many queries as keys" if on_itself else "at least one query and one key"
        raise ValueError(f"call: expected {expected}, got {queries} and {keys}")
    if patches is not None:
        check_tokens((queries, keys), patches.grid, patches.num_special)
    # Few large heads or many small ones at a time: what is measured together stays in the processor's cache.
    together = max(1, _BLOCK_WEIGHTS // (queries * keys))
    groups = [slice(head, min(head + together, call.num_heads)) for head in range(0, call.num_heads, together)]
    found = side_by_side(lambda heads: _read(call, row, heads, on_itself, patches, size), groups)
    entropy, diagonal, previous, after, distance, looking, column_sums = (
        torch.cat([getattr(each, name) for each in found]) for name in _Reading.SUMS
    )
    mean_row = column_sums / queries
    entropy = entropy / queries
    neighbours = max(1, queries - 1)
    in_line = on_itself and queries > 1 and patches is None
    measured: dict[str, Tensor | None] = {
        "entropy": entropy,
        "diagonal": diagonal / queries if on_itself else None,
        "previous": previous / neighbours if in_line else None,
        "next": after / neighbours if in_line else None,
        "first": None if patches is not None and not patches.num_special else mean_row[:, 0],
        "separator": mean_row[:, list(separators)].sum(dim=-1) if separators else None,
        "information": None if on_itself else (attention_entropy(mean_row) - entropy).clamp_min(0.0),
        "distance": None if patches is None else distance / looking.clamp_min(1),
    }
    heads = range(call.num_heads)
    numbers: list[dict[str, Any]] = [
        {name: None if value is None else float(value[head]) for name, value in measured.items()} for head in heads
    ]
    overview = torch.cat([each.overview for each in found])
    worst = float(torch.stack([each.row_error for each in found]).max())
    return LayerMeasures(tuple(Fingerprint(**each) for each in numbers), overview, worst)


@dataclass
class _Reading:
    """Sums over the queries of some heads, and their overview."""

    SUMS: ClassVar = ("entropy", "diagonal", "previous", "next", "distance", "looking", "columns")

    entropy: Float[Tensor, " heads"]
    diagonal: Float[Tensor, " heads"]
    previous: Float[Tensor, " heads"]
    next: Float[Tensor, " heads"]
    distance: Float[Tensor, " heads"]
    looking: Float[Tensor, " heads"]  # patches that look at any patch
    columns: Float[Tensor, "heads keys"]
    overview: Float[Tensor, "heads rows columns"] = field(init=False)
    row_error: Float[Tensor, ""] = field(default_factory=lambda: torch.zeros(()))

    def add(self, weights: Float[Tensor, "heads some keys"], first: int, on_itself: bool) -> None:
        """Count these rows in, the first of which is query `first`."""
        self.entropy += attention_entropy(weights).sum(dim=-1)
        self.columns += weights.sum(dim=-2)
        self.row_error = torch.maximum(self.row_error, row_error(weights))
        if on_itself:
            for sums, offset in ((self.diagonal, 0), (self.previous, -1), (self.next, 1)):
                if -weights.shape[-2] < first + offset < weights.shape[-1]:
                    sums += weights.diagonal(first + offset, dim1=-2, dim2=-1).sum(dim=-1)

    def add_distances(self, weights: Float[Tensor, "heads some keys"], first: int, patches: Patches) -> None:
        """Count in how far these rows look, of those that are patches."""
        special = patches.num_special
        between = weights[:, max(0, special - first) :, special:]
        rows = patches.distances[max(0, first - special) :][: between.shape[1]]
        mass = between.sum(dim=-1)
        self.distance += ((between * rows).sum(dim=-1) / mass.where(mass > 0, 1.0)).sum(dim=-1)
        self.looking += (mass > 0).sum(dim=-1)


def _read(call: AttentionCall, row: int, heads: slice, on_itself: bool, patches: Patches | None, size: int) -> _Reading:
    """The rows of these heads, read once: summed up and pooled as they come by."""
    queries, keys, count = call.num_queries, call.num_keys, heads.stop - heads.start
    sums = {name: torch.zeros(count, dtype=torch.float64) for name in _Reading.SUMS[:-1]}
    reading = _Reading(**sums, columns=torch.zeros(count, keys, dtype=torch.float64))
    height = max(1, _BLOCK_WEIGHTS // (count * keys))

    def blocks() -> Iterator[Float[Tensor, "heads some keys"]]:
        for first in range(0, queries, height):
            may_end()
            weights = call.weights(head=heads, queries=slice(first, first + height))[row]
            reading.add(weights, first, on_itself)
            if patches is not None:
                reading.add_distances(weights, first, patches)
            yield weights

    reading.overview = max_pooled(blocks(), queries, keys, size)
    return reading

"""What the heads of a layer do, in a few numbers each and a thumbnail, without ever holding a whole long map."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from viz_core.analysis import attention_entropy
from viz_core.trace import AttentionCall

# Rows are measured so many at a time that a block stays below 2**18 weights (1 MB, so in the cache).
_BLOCK_WEIGHTS = 2**18


@dataclass(frozen=True)
class Fingerprint:
    """The measures of one head, each a mean over queries; None where it means nothing for these maps.

    Attributes:
        entropy: bits (`analysis.attention_entropy`).
        diagonal: weight of a token on itself (`analysis.diagonal_mass`), 0 to 1; as the next two,
            for maps of a sequence on itself.
        previous: weight on the token before (`analysis.offset_mass` at -1).
        next: weight on the token after (`analysis.offset_mass` at 1).
        first: weight on the first key (`analysis.key_mass`).
        separator: weight on keys that separate or end (`analysis.key_mass`).
        alignment: bits that a query tells about its key (`analysis.query_information`); for maps
            between two sequences.
    """

    entropy: float
    diagonal: float | None
    previous: float | None
    next: float | None
    first: float
    separator: float | None
    alignment: float | None


MEASURES = tuple(Fingerprint.__dataclass_fields__)


@dataclass(frozen=True)
class LayerMeasures:
    """The heads of one layer: a fingerprint and an overview each.

    Attributes:
        fingerprints: one for each head.
        overview: the largest weights, as in `AttentionCall.overview`.
    """

    fingerprints: tuple[Fingerprint, ...]
    overview: Float[Tensor, "heads rows columns"]


def measure_layer(
    call: AttentionCall, row: int = 0, *, on_itself: bool = True, separators: Sequence[int] = (), size: int = 64
) -> LayerMeasures:
    """Measure every head of a call, block of queries by block of queries.

    Args:
        row: which row of the batch.
        on_itself: whether queries and keys are one sequence: then diagonal, previous and next are
            measured, else alignment.
        separators: keys that separate or end.
        size: of the overview, at most so many on a side.

    Raises:
        ValueError: if there are no queries or keys, or `on_itself` with unequal numbers of them.
    """
    queries, keys = call.num_queries, call.num_keys
    if not queries or not keys or (on_itself and queries != keys):
        expected = "as many queries as keys" if on_itself else "at least one query and one key"
        raise ValueError(f"call: expected {expected}, got {queries} and {keys}")
    zeros = torch.zeros(call.num_heads, dtype=torch.float64)
    sums = {"entropy": zeros.clone(), **{name: zeros.clone() for name in ("diagonal", "previous", "next")}}
    column_sums = torch.zeros(call.num_heads, keys, dtype=torch.float64)
    pooled = []
    for start, weights in _blocks(call, row):
        sums["entropy"] += attention_entropy(weights).sum(dim=-1)
        column_sums += weights.sum(dim=-2)
        pooled.append(F.adaptive_max_pool1d(weights, min(size, keys)))
        if on_itself:
            for name, offset in (("diagonal", 0), ("previous", -1), ("next", 1)):
                if -weights.shape[-2] < start + offset < keys:
                    sums[name] += weights.diagonal(start + offset, dim1=-2, dim2=-1).sum(dim=-1)
    rows = F.adaptive_max_pool1d(torch.cat(pooled, dim=1).transpose(1, 2), min(size, queries)).transpose(1, 2)
    mean_row = column_sums / queries
    entropy = sums["entropy"] / queries
    neighbours = max(1, queries - 1)
    measured: dict[str, Tensor | None] = {
        "entropy": entropy,
        "diagonal": sums["diagonal"] / queries if on_itself else None,
        "previous": sums["previous"] / neighbours if on_itself and queries > 1 else None,
        "next": sums["next"] / neighbours if on_itself and queries > 1 else None,
        "first": mean_row[:, 0],
        "separator": mean_row[:, list(separators)].sum(dim=-1) if separators else None,
        "alignment": None if on_itself else (attention_entropy(mean_row) - entropy).clamp_min(0.0),
    }
    heads = range(call.num_heads)
    numbers: list[dict[str, Any]] = [
        {name: None if value is None else float(value[head]) for name, value in measured.items()} for head in heads
    ]
    return LayerMeasures(tuple(Fingerprint(**each) for each in numbers), rows.contiguous())


def _blocks(call: AttentionCall, row: int) -> Iterator[tuple[int, Float[Tensor, "heads rows keys"]]]:
    height = max(1, _BLOCK_WEIGHTS // max(1, call.num_heads * call.num_keys))
    for start in range(0, call.num_queries, height):
        yield start, call.weights(queries=slice(start, start + height))[row]

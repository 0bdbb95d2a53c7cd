"""Attention maps of one kind, layer by layer, and what a thumbnail grid shows of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import UInt8
from torch import Tensor

from viz_core.analysis import attention_entropy, diagonal_mass
from viz_core.trace import AttentionCall

THUMBNAIL_SIZE = 64
"""Thumbnails have at most this many pixels on a side; a map no larger is its own thumbnail."""

# Heads are measured so many at a time that their maps stay below 2**20 weights (4 MB, so in the cache), or one by one.
_BLOCK_WEIGHTS = 2**20


@dataclass(frozen=True)
class LayerPicture:
    """What the grid shows of one layer: a thumbnail and the measures of each head.

    Attributes:
        thumbnails: 0 to 255 for weights 0 to 1, max-pooled as in `AttentionCall.overview`.
        entropy: bits, mean over queries, one number for each head.
        diagonal: mean weight of a token on itself, one number for each head; None where
            queries and keys are not equally many.
    """

    thumbnails: UInt8[Tensor, "heads rows columns"]
    entropy: tuple[float, ...]
    diagonal: tuple[float, ...] | None


@dataclass(frozen=True)
class MapGroup:
    """Maps of one kind (say, the decoder's cross-attention): one call for each layer, the same tokens in all.

    Attributes:
        id: short name for links: lower-case letters, digits, "_" and "-".
        label: name of the kind, for people.
        queries_label: what the queries are, for people ("French").
        keys_label: what the keys are, for people ("English").
        query_tokens: one for each query, as they are; whoever draws them escapes them.
        key_tokens: one for each key.
        calls: the layers, first to last.
        row: which row of the batch.

    Raises:
        ValueError: if the id could not stand in a link, there is no layer, the tokens are not as
            many as the maps have rows and columns, or the batch has no such row.
    """

    id: str
    label: str
    queries_label: str
    keys_label: str
    query_tokens: tuple[str, ...]
    key_tokens: tuple[str, ...]
    calls: tuple[AttentionCall, ...]
    row: int = 0

    def __post_init__(self) -> None:
        if not re.fullmatch("[a-z0-9_-]{1,32}", self.id):
            raise ValueError(f"id: expected 1 to 32 of a-z, 0-9, _ and -, got {self.id!r}")
        if not self.calls:
            raise ValueError(f"calls of {self.id!r}: expected at least one layer, got none")
        tokens = len(self.query_tokens), len(self.key_tokens)
        for call in self.calls:
            batch = call.source.shape[0]
            if (call.num_queries, call.num_keys) != tokens:
                raise ValueError(
                    f"tokens of {self.id!r}: expected {call.num_queries} for queries and {call.num_keys} for keys"
                    f" as in {call.site}, got {tokens[0]} and {tokens[1]}"
                )
            if not 0 <= self.row < batch:
                raise ValueError(f"row of {self.id!r}: expected 0 to {batch - 1}, got {self.row}")

    @cached_property
    def pictures(self) -> tuple[LayerPicture, ...]:
        """Every layer as the grid shows it; computed once and kept, so hold on to the group between looks."""
        return tuple(_picture(call, self.row) for call in self.calls)


def _picture(call: AttentionCall, row: int) -> LayerPicture:
    overview = call.overview(THUMBNAIL_SIZE)[row]
    square = call.num_queries == call.num_keys
    at_a_time = max(1, _BLOCK_WEIGHTS // max(1, call.source.shape[0] * call.num_queries * call.num_keys))
    entropy: list[float] = []
    diagonal: list[float] = []
    for first in range(0, call.num_heads, at_a_time):
        weights = call.weights(head=slice(first, first + at_a_time))[row]
        entropy += attention_entropy(weights).mean(dim=-1).tolist()
        diagonal += diagonal_mass(weights).tolist() if square else []
    return LayerPicture(
        thumbnails=(overview.nan_to_num(0.0) * 255).round().clamp(0, 255).to(torch.uint8),
        entropy=tuple(entropy),
        diagonal=tuple(diagonal) if square else None,
    )

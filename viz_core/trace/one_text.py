"""One text of a recorded batch: the same source with some of its queries and keys."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.trace.linear_rule import LinearRule
from viz_core.trace.source import Direct, OfSource, Projected, Source, StoredTensors, cropped
from viz_core.trace.weights import causal_mask


def source_of_text(source: Source, row: int, queries: range, keys: range) -> Source:
    """Return the source of one row of the batch, with these queries and keys alone: views of what was recorded.

    Keys among them that are no tokens stay so.

    ValueError if a tensor has been changed in place since.
    """
    own, rows, columns = slice(row, row + 1), slice(queries.start, queries.stop), slice(keys.start, keys.stop)
    spans = {"queries": rows, "keys": columns, "values": columns, "gate": rows, "sampled": rows}
    tokens: Tensor | None = getattr(source, "key_tokens", None)
    tokens = None if tokens is None or bool(tokens[own, columns].all()) else tokens[own, columns]
    parts: dict[str, Any] = {"query_tokens": None, "key_tokens": tokens, "texts": None}
    if isinstance(source, StoredTensors):
        source.check_unchanged()
        named = source.named_tensors().items()
        parts |= {name: tensor[own, :, spans[name]] for name, tensor in named if name in spans}
    if isinstance(source, Direct):
        return replace(source, weights=source.weights[own, :, rows, columns], **parts)
    if not isinstance(source, Projected) or source.edits is not None or isinstance(source, LinearRule):
        return OneText(source, row, queries, keys)
    mask, is_causal = source.mask, source.causal
    _, _, num_queries, num_keys = source.shape
    if is_causal and not (num_queries == num_keys and queries == keys):
        past = causal_mask(num_queries, num_keys, source.queries.device)[None, None]
        mask, is_causal = past if mask is None else mask & past, False
    part = own, slice(None), rows, columns
    return replace(
        source,
        mask=None if mask is None else cropped(mask, *part),
        bias=None if source.bias is None else cropped(source.bias, *part),
        causal=is_causal,
        **parts,
    )


@dataclass(frozen=True, eq=False)
class OneText(OfSource):
    """Some queries and keys of one row of another source's batch."""

    tokens: ClassVar[None] = None  # every key is a token
    source: Source
    row: int
    queries: range
    keys: range

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """A batch of 1, heads, queries and keys."""
        return 1, self.source.shape[1], len(self.queries), len(self.keys)

    @property
    def values(self) -> Tensor | None:
        """The values of these keys, if they were recorded."""
        values: Tensor | None = getattr(self.source, "values", None)
        return None if values is None else values[self.row : self.row + 1, :, self.keys.start : self.keys.stop]

    @property
    def gate(self) -> Tensor | None:
        """The gate of these queries, if there is one."""
        gate: Tensor | None = getattr(self.source, "gate", None)
        return None if gate is None else gate[self.row : self.row + 1, :, self.queries.start : self.queries.stop]

    @property
    def is_changed(self) -> bool:
        """Whether the layer changes its heads' outputs in another way before they are projected."""
        return getattr(self.source, "is_changed", False)

    def value_factor(self, head: int) -> Float[Tensor, "1"]:
        """Return what edits multiply each value of a head by; ValueError if they replace its output."""
        if isinstance(self.source, Projected):
            return self.source.value_factor(head)[self.row : self.row + 1]
        return torch.ones(1)

    def tensors(self) -> list[Tensor]:
        """Return the tensors stored for the whole batch."""
        return self.source.tensors()

    def check_unchanged(self) -> None:
        """Raise ValueError if a tensor has been changed in place since it was recorded."""
        if isinstance(self.source, StoredTensors):
            self.source.check_unchanged()

    def rows(self, heads: slice, queries: slice) -> Float[Tensor, "1 some_heads rows keys"]:
        """Return the weights of these heads and queries over the keys of the text."""
        return self._part(self.source.rows, heads, queries)

    def scores(self, heads: slice, queries: slice) -> Float[Tensor, "1 some_heads rows keys"]:
        """Return the scores whose softmax is `rows`; ValueError if there are none."""
        if not isinstance(self.source, Projected):
            raise ValueError("expected queries and keys, got whole maps")
        return self._part(self.source.scores, heads, queries)

    def _part(self, function: Callable[[slice, slice], Tensor], heads: slice, queries: slice) -> Tensor:
        places = self.queries[queries]
        rows = function(heads, slice(places.start, places.stop, places.step))
        return rows[self.row : self.row + 1, ..., self.keys.start : self.keys.stop]

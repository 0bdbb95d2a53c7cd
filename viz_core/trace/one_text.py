"""One text of a recorded batch, without its padding."""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.trace.linear_rule import LinearRule
from viz_core.trace.source import Direct, OfSource, Projected, Source, StoredTensors
from viz_core.trace.weights import causal_mask


def source_of_text(source: Source, row: int, queries: range, keys: range) -> Source:
    """Return the source of one row of the batch, with these queries and keys alone: views of what was recorded.

    ValueError if a tensor has been changed in place since.
    """
    if isinstance(source, StoredTensors):
        source.check_unchanged()
    if isinstance(source, Direct):
        weights = _taken(_taken(source.weights[row : row + 1], queries, 2), keys, 3)
        values = None if source.values is None else _taken(source.values[row : row + 1], keys, 2)
        gate = None if source.gate is None else _taken(source.gate[row : row + 1], queries, 2)
        return Direct(weights, values, signed=source.signed, gate=gate, is_changed=source.is_changed)
    if not isinstance(source, Projected) or source.edits is not None or isinstance(source, LinearRule):
        return OneText(source, row, queries, keys)
    mask, is_causal = source.mask, source.causal
    _, _, num_queries, num_keys = source.shape
    if is_causal and not (num_queries == num_keys and queries == keys):
        past = causal_mask(num_queries, num_keys, source.queries.device)[None, None]
        mask, is_causal = past if mask is None else mask & past, False
    return replace(
        source,
        queries=_taken(source.queries[row : row + 1], queries, 2),
        keys=_taken(source.keys[row : row + 1], keys, 2),
        mask=None if mask is None else _cropped(mask, row, queries, keys),
        bias=None if source.bias is None else _cropped(source.bias, row, queries, keys),
        causal=is_causal,
        values=None if source.values is None else _taken(source.values[row : row + 1], keys, 2),
        query_tokens=None,
        key_tokens=None,
        gate=None if source.gate is None else _taken(source.gate[row : row + 1], queries, 2),
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
        return None if values is None else _taken(values[self.row : self.row + 1], self.keys, 2)

    @property
    def gate(self) -> Tensor | None:
        """The gate of these queries, if there is one."""
        gate: Tensor | None = getattr(self.source, "gate", None)
        return None if gate is None else _taken(gate[self.row : self.row + 1], self.queries, 2)

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
        if isinstance(self.source, Projected | Direct):
            self.source.check_unchanged()

    def rows(self, heads: slice, queries: slice) -> Float[Tensor, "1 some_heads rows keys"]:
        """Return the weights of these heads and queries over the keys of the text."""
        places = self.queries[queries]
        rows = self.source.rows(heads, slice(places.start, places.stop, places.step))
        return _taken(rows[self.row : self.row + 1], self.keys, 3)


def _taken(tensor: Tensor, places: range, axis: int) -> Tensor:
    return tensor.narrow(axis, places.start, len(places))


def _cropped(tensor: Tensor, row: int, queries: range, keys: range) -> Tensor:
    """Return the part of a broadcastable (batch, heads, queries, keys) tensor for one row of the batch."""
    tensor = tensor.reshape((1,) * (4 - tensor.dim()) + tensor.shape)
    tensor = tensor[row : row + 1] if tensor.shape[0] > 1 else tensor
    tensor = _taken(tensor, queries, 2) if tensor.shape[2] > 1 else tensor
    return _taken(tensor, keys, 3) if tensor.shape[3] > 1 else tensor

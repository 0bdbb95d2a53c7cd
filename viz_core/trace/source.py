"""What a recording keeps of an attention call, and the way back from it to weights, block by block.

This, `attention_call` and `trace` are the ground floor: they import nothing else of the library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

Mask: TypeAlias = Bool[Tensor, "#batch #heads #queries #keys"]
Bias: TypeAlias = Float[Tensor, "#batch #heads #queries #keys"]

# A block of rows is recomputed at a time; 2**23 float32 scores are 32 MB.
_BLOCK_SCORES = 2**23


@runtime_checkable
class Source(Protocol):
    """Where the weights of a call come from: queries and keys, weights as they were computed, or another machine."""

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Batch, heads, queries and keys."""
        ...

    def tensors(self) -> list[Tensor]:
        """What is held here for it."""
        ...

    def rows(self, heads: slice, queries: slice) -> Float[Tensor, "batch some_heads rows keys"]:
        """The weights of these heads and queries over all keys; a copy."""
        ...


@dataclass(frozen=True)
class Projected:
    """Queries and keys after projection, and all else that decides their weights."""

    queries: Float[Tensor, "batch heads queries d"]
    keys: Float[Tensor, "batch key_heads keys d"]
    mask: Mask | None
    bias: Bias | None
    causal: bool
    scale: float
    softcap: float | None = None

    @property
    def shape(self) -> tuple[int, int, int, int]:
        batch, heads, num_queries, _ = self.queries.shape
        return batch, heads, num_queries, self.keys.shape[2]

    def tensors(self) -> list[Tensor]:
        return [t for t in (self.queries, self.keys, self.mask, self.bias) if t is not None]

    def rows(self, heads: slice, queries: slice) -> Float[Tensor, "batch some_heads rows keys"]:
        """softmax(scale Q K^T + bias) for these heads and queries over all keys, the product soft-capped if asked."""
        group = self.queries.shape[1] // self.keys.shape[1]
        key_heads = torch.arange(heads.start, heads.stop, device=self.keys.device) // group
        q = self.queries[:, heads, queries].float()
        k = self.keys[:, key_heads] if group > 1 else self.keys[:, heads]
        scores = (q * self.scale) @ k.float().transpose(-2, -1)
        if self.softcap is not None:
            scores = torch.tanh(scores / self.softcap) * self.softcap
        if self.bias is not None:
            scores += _crop(self.bias, heads, queries)
        allowed = None if self.mask is None else _crop(self.mask, heads, queries)
        if self.causal:
            past = causal_mask(self.shape[2], self.shape[3], scores.device)[queries]
            allowed = past if allowed is None else allowed & past
        if allowed is not None:
            scores.masked_fill_(~allowed, -torch.inf)
        weights = torch.softmax(scores, dim=-1)  # 0/0 only where every key is masked
        return weights.nan_to_num(0.0) if weights.requires_grad else weights.nan_to_num_(0.0)


@dataclass(frozen=True)
class Direct:
    """Weights as the layer computed them."""

    values: Float[Tensor, "batch heads queries keys"]

    @property
    def shape(self) -> tuple[int, int, int, int]:
        batch, heads, queries, keys = self.values.shape
        return batch, heads, queries, keys

    def tensors(self) -> list[Tensor]:
        return [self.values]

    def rows(self, heads: slice, queries: slice) -> Float[Tensor, "batch some_heads rows keys"]:
        return self.values[:, heads, queries].float().clone()  # what a reader does to it must not reach the trace


def attend_in_blocks(source: Projected, values: Tensor, dropout: float) -> Float[Tensor, "batch heads queries v"]:
    """Weights times values where no fused kernel can: never more weights at once than a block's."""
    _, num_heads, num_queries, _ = source.shape
    values = values.repeat_interleave(num_heads // values.shape[1], dim=1)
    parts = [
        F.dropout(source.rows(slice(0, num_heads), block), dropout).to(values.dtype) @ values
        for block in row_blocks(source, range(num_queries), num_heads)
    ]
    return torch.cat(parts, dim=2)


def row_blocks(source: Source, rows: range, num_heads: int) -> list[slice]:
    """Cut the wanted rows into slices whose scores fit the block budget; no rows are one empty slice."""
    if not len(rows):
        return [slice(0, 0)]
    per_row = max(1, source.shape[0] * num_heads * source.shape[3])
    height = max(1, _BLOCK_SCORES // per_row)
    cuts = [rows[i : i + height] for i in range(0, len(rows), height)]
    return [slice(cut[0], cut[-1] + 1, rows.step) for cut in cuts]


def causal_mask(num_queries: int, num_keys: int, device: torch.device) -> Bool[Tensor, "queries keys"]:
    ones = torch.ones(num_queries, num_keys, dtype=torch.bool, device=device)
    return ones.tril(diagonal=num_keys - num_queries)


def _crop(tensor: Tensor, heads: slice, queries: slice) -> Tensor:
    """The part of a broadcastable (batch, heads, queries, keys) tensor that these heads and queries meet."""
    tensor = tensor.reshape((1,) * (4 - tensor.dim()) + tensor.shape)
    if tensor.shape[1] > 1:
        tensor = tensor[:, heads]
    return tensor[:, :, queries] if tensor.shape[2] > 1 else tensor

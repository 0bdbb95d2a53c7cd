"""The one door of all attention, and the one way back from queries and keys to weights.

Every model hands its queries, keys and values to `attend`. Inside a `record()` block the
call is kept as references to queries and keys after projection, never as a map; any map,
tile or thumbnail is recomputed exactly when someone looks at it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeAlias

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

Mask: TypeAlias = Bool[Tensor, "#batch #heads #queries #keys"]
Bias: TypeAlias = Float[Tensor, "#batch #heads #queries #keys"]

# A block of rows is recomputed at a time; 2**23 float32 scores are 32 MB.
_BLOCK_SCORES = 2**23


def attend(
    queries: Float[Tensor, "batch heads queries d"],
    keys: Float[Tensor, "batch key_heads keys d"],
    values: Float[Tensor, "batch key_heads keys v"],
    *,
    mask: Mask | None = None,
    bias: Bias | None = None,
    causal: bool = False,
    scale: float | None = None,
    softcap: float | None = None,
    dropout: float = 0.0,
    site: str | None = None,
) -> Float[Tensor, "batch heads queries v"]:
    """Scaled dot-product attention by torch's fused kernel, recorded where a recorder listens.

    softmax(scale * Q K^T + bias, over the keys the mask allows) V   (Vaswani 2017, equation 1)

    Args:
        mask: True where a query may look; broadcast over batch, heads and queries.
        bias: added to the scaled scores (position biases, additive masks).
        causal: query i of q sees key j of k only if j <= i + (k - q): the last query is
            the newest step, as when decoding with a cache.
        scale: 1 / sqrt(d) unless given.
        softcap: scaled scores s become c tanh(s / c), so none exceeds c (Gemma 2, section 2). No fused
            kernel does that; the weights are made for some queries at a time, and forgotten.
        dropout: probability of dropping a weight; recorded weights are those before dropout.
        site: the name under which a recorder keeps this call; "attention.N" unless given.

    Fewer key heads than query heads are grouped queries (Ainslie 2023): each key head serves
    heads / key_heads neighbouring query heads. A query whose keys are all masked gets zeros.

    Raises:
        ValueError: if the shapes do not fit together, or softcap is not positive.
    """
    if softcap is not None and softcap <= 0:
        raise ValueError(f"softcap: expected a positive number, got {softcap}")
    _check_shapes(queries, keys, values, mask, bias)
    scale = queries.shape[-1] ** -0.5 if scale is None else scale
    causal = causal and queries.shape[2] > 1  # one new step sees everything before it
    trace = _recorder.get()
    if trace is not None and trace.differentiable:
        projected = _Projected(queries, keys, mask, bias, causal, scale, softcap)
        return _attend_in_graph(projected, values, dropout, trace, site)
    if trace is not None:
        kept_bias = None if bias is None else bias.detach()
        trace.add(_Projected(queries.detach(), keys.detach(), mask, kept_bias, causal, scale, softcap), site)
    if softcap is not None:
        return _attend_in_blocks(_Projected(queries, keys, mask, bias, causal, scale, softcap), values, dropout)

    square = queries.shape[2] == keys.shape[2]
    fused_causal = causal and square and mask is None and bias is None
    return F.scaled_dot_product_attention(
        queries,
        keys,
        values,
        attn_mask=None if fused_causal else _combine(mask, bias, causal, queries, keys),
        dropout_p=dropout,
        is_causal=fused_causal,
        scale=scale,
        enable_gqa=queries.shape[1] != keys.shape[1],
    )


def record_weights(weights: Float[Tensor, "batch heads queries keys"], site: str | None = None) -> None:
    """Hand weights that do not come from scaled dot products (additive attention, kernels) to the recorder."""
    trace = _recorder.get()
    if trace is not None:
        trace.add(_Direct(weights.detach()), site)


@contextmanager
def record(differentiable: bool = False) -> Iterator[Trace]:
    """Record every attention call made in this block, by this thread or task and nobody else's.

    Args:
        differentiable: weights are computed whole, outside the fused kernel, and stay in the graph, so that
            an output can be differentiated by them: `call.graph_weights`. Dear in memory; for small inputs.
    """
    trace = Trace(differentiable)
    token = _recorder.set(trace)
    try:
        yield trace
    finally:
        _recorder.reset(token)


@contextmanager
def unrecorded() -> Iterator[None]:
    """Record nothing in this block: a text is written step by step, and recorded once when it stands."""
    token = _recorder.set(None)
    try:
        yield
    finally:
        _recorder.reset(token)


class Trace:
    """The attention calls of one `record()` block, by site, in call order.

    A site called again in the same block is kept as "SITE@2", "SITE@3", ...
    """

    def __init__(self, differentiable: bool = False) -> None:
        self.differentiable = differentiable
        self._calls: dict[str, AttentionCall] = {}
        self._unnamed = 0

    def add(self, source: _Source, site: str | None) -> None:
        if site is None:
            site = f"attention.{self._unnamed}"
            self._unnamed += 1
        name, count = site, 1
        while name in self._calls:
            count += 1
            name = f"{site}@{count}"
        self._calls[name] = AttentionCall(name, source)

    @property
    def sites(self) -> tuple[str, ...]:
        """Names of the recorded calls, in call order."""
        return tuple(self._calls)

    def __getitem__(self, site: str) -> AttentionCall:
        try:
            return self._calls[site]
        except KeyError:
            raise KeyError(f"no site {site!r} in this trace; it has {', '.join(self.sites) or 'none'}") from None

    def __iter__(self) -> Iterator[AttentionCall]:
        return iter(self._calls.values())

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def nbytes(self) -> int:
        """Bytes of the storages this recording keeps alive, each counted once."""
        storages = {}
        for call in self:
            for tensor in call.source.tensors():
                storage = tensor.untyped_storage()
                storages[storage.data_ptr()] = storage.nbytes()
        return sum(storages.values())


@dataclass(frozen=True)
class AttentionCall:
    """One recorded attention call: its exact weights, whole or in tiles, on demand."""

    site: str
    source: _Source

    @property
    def stack(self) -> str:
        """The first part of the site: "encoder" in "encoder.0.self"."""
        return self.site.split(".")[0]

    @property
    def kind(self) -> str:
        """What attends to what: "self" or "cross"; "attention" for a layer used by itself."""
        parts = self.site.split("@")[0].split(".")
        return parts[-1] if len(parts) > 2 else parts[0]

    @property
    def layer(self) -> int:
        """Index of the layer in its stack, from 0."""
        parts = self.site.split("@")[0].split(".")
        return next((int(part) for part in parts if part.isdecimal()), 0)

    @property
    def num_heads(self) -> int:
        return self.source.shape[1]

    @property
    def num_queries(self) -> int:
        return self.source.shape[2]

    @property
    def num_keys(self) -> int:
        return self.source.shape[3]

    @property
    def graph_weights(self) -> Float[Tensor, "batch heads queries keys"]:
        """The very weights that made the output, in its graph: what `torch.autograd.grad` can differentiate by.

        Raises:
            ValueError: unless the call was recorded by `record(differentiable=True)` with gradients on.
        """
        if not isinstance(self.source, _Direct) or not self.source.values.requires_grad:
            raise ValueError(f"site {self.site!r}: expected a call recorded by record(differentiable=True)")
        return self.source.values

    @torch.no_grad()
    def weights(
        self,
        head: int | slice | None = None,
        queries: slice | None = None,
        keys: slice | None = None,
    ) -> Float[Tensor, "..."]:
        """Exact attention weights, float32 on the CPU: (batch, heads, queries, keys), or one tile of them.

        Every row sums to 1 over ALL keys, also where only a slice of keys is asked for; a row
        whose keys are all masked is zeros. A head given as a number drops the heads axis.

        Raises:
            IndexError: if there is no such head.
        """
        heads = _heads(head, self.num_heads)
        rows = range(*(queries or slice(None)).indices(self.num_queries))
        columns = keys or slice(None)
        parts = [
            self.source.rows(heads, block)[..., columns].cpu()
            for block in _blocks(self.source, rows, heads.stop - heads.start)
        ]
        tile = parts[0] if len(parts) == 1 else torch.cat(parts, dim=2)
        return tile[:, 0] if isinstance(head, int) else tile

    @torch.no_grad()
    def overview(self, size: int = 64) -> Float[Tensor, "batch heads rows columns"]:
        """Max-pooled thumbnails, at most `size` on a side, computed block by block.

        Thumbnail pixel (i, j) is the largest weight with query in bin i and key in bin j, where
        bin i of s over n tokens is floor(i n / s) .. ceil((i + 1) n / s) - 1, as in torch's
        adaptive max-pooling. Up to `size` tokens the thumbnail is the map itself.

        Raises:
            ValueError: if size is not positive.
        """
        if size < 1:
            raise ValueError(f"size: expected at least 1, got {size}")
        num_rows, num_columns = min(size, self.num_queries), min(size, self.num_keys)
        every = slice(0, self.num_heads)
        if len(_blocks(self.source, range(self.num_queries), self.num_heads)) == 1:  # the whole map is small enough
            whole = self.source.rows(every, slice(0, self.num_queries))
            return F.adaptive_max_pool2d(whole, (num_rows, num_columns)).cpu()
        rows = []
        for i in range(num_rows):
            start, stop = i * self.num_queries // num_rows, -(-(i + 1) * self.num_queries // num_rows)
            blocks = _blocks(self.source, range(start, stop), self.num_heads)
            strongest = [self.source.rows(every, block).amax(dim=2) for block in blocks]
            rows.append(F.adaptive_max_pool1d(torch.stack(strongest).amax(dim=0), num_columns))
        return torch.stack(rows, dim=2).cpu()


@dataclass(frozen=True)
class _Projected:
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
        scores = q @ k.float().transpose(-2, -1) * self.scale
        if self.softcap is not None:
            scores = torch.tanh(scores / self.softcap) * self.softcap
        if self.bias is not None:
            scores += _crop(self.bias, heads, queries)
        allowed = None if self.mask is None else _crop(self.mask, heads, queries)
        if self.causal:
            past = _causal_mask(self.shape[2], self.shape[3], scores.device)[queries]
            allowed = past if allowed is None else allowed & past
        if allowed is not None:
            scores.masked_fill_(~allowed, -torch.inf)
        weights = torch.softmax(scores, dim=-1)  # 0/0 only where every key is masked
        return weights.nan_to_num(0.0) if weights.requires_grad else weights.nan_to_num_(0.0)


@dataclass(frozen=True)
class _Direct:
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


_Source: TypeAlias = _Projected | _Direct
_recorder: ContextVar[Trace | None] = ContextVar("recorder", default=None)


def _attend_in_graph(
    source: _Projected, values: Tensor, dropout: float, trace: Trace, site: str | None
) -> Float[Tensor, "batch heads queries v"]:
    """Weights times values, with the weights kept as they are in the graph, and a leaf where nothing leads to them."""
    _, num_heads, num_queries, _ = source.shape
    weights = source.rows(slice(0, num_heads), slice(0, num_queries))
    if torch.is_grad_enabled() and not weights.requires_grad:
        weights.requires_grad_()
    trace.add(_Direct(weights), site)
    values = values.repeat_interleave(num_heads // values.shape[1], dim=1)
    return F.dropout(weights, dropout).to(values.dtype) @ values


def _attend_in_blocks(source: _Projected, values: Tensor, dropout: float) -> Float[Tensor, "batch heads queries v"]:
    """Weights times values where no fused kernel can: never more weights at once than a block's."""
    _, num_heads, num_queries, _ = source.shape
    values = values.repeat_interleave(num_heads // values.shape[1], dim=1)
    parts = [
        F.dropout(source.rows(slice(0, num_heads), block), dropout).to(values.dtype) @ values
        for block in _blocks(source, range(num_queries), num_heads)
    ]
    return torch.cat(parts, dim=2)


def _blocks(source: _Source, rows: range, num_heads: int) -> list[slice]:
    """Cut the wanted rows into slices whose scores fit the block budget; no rows are one empty slice."""
    if not len(rows):
        return [slice(0, 0)]
    per_row = max(1, source.shape[0] * num_heads * source.shape[3])
    height = max(1, _BLOCK_SCORES // per_row)
    cuts = [rows[i : i + height] for i in range(0, len(rows), height)]
    return [slice(cut[0], cut[-1] + 1, rows.step) for cut in cuts]


def _combine(mask: Mask | None, bias: Bias | None, causal: bool, queries: Tensor, keys: Tensor) -> Tensor | None:
    """One attn_mask for the kernel: boolean where it can be, additive where there is a bias."""
    if causal:
        past = _causal_mask(queries.shape[2], keys.shape[2], queries.device)
        mask = past if mask is None else mask & past
    if bias is None or mask is None:
        return mask if bias is None else bias.to(queries.dtype)
    return torch.where(mask, bias, -torch.inf).to(queries.dtype)


def _causal_mask(num_queries: int, num_keys: int, device: torch.device) -> Bool[Tensor, "queries keys"]:
    ones = torch.ones(num_queries, num_keys, dtype=torch.bool, device=device)
    return ones.tril(diagonal=num_keys - num_queries)


def _crop(tensor: Tensor, heads: slice, queries: slice) -> Tensor:
    """The part of a broadcastable (batch, heads, queries, keys) tensor that these heads and queries meet."""
    tensor = tensor.reshape((1,) * (4 - tensor.dim()) + tensor.shape)
    if tensor.shape[1] > 1:
        tensor = tensor[:, heads]
    return tensor[:, :, queries] if tensor.shape[2] > 1 else tensor


def _heads(head: int | slice | None, num_heads: int) -> slice:
    if isinstance(head, int):
        if not -num_heads <= head < num_heads:
            raise IndexError(f"head: expected 0 to {num_heads - 1}, got {head}")
        return slice(head % num_heads, head % num_heads + 1)
    start, stop, step = (head or slice(None)).indices(num_heads)
    if step != 1:
        raise IndexError(f"head: expected a slice of neighbours, got step {step}")
    return slice(start, max(start, stop))


def _check_shapes(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, bias: Tensor | None) -> None:
    shapes: Sequence[tuple[int, ...]] = [tuple(t.shape) for t in (queries, keys, values)]
    if any(len(shape) != 4 for shape in shapes):
        raise ValueError(f"expected queries, keys, values of shape (batch, heads, n, width), got {shapes}")
    if queries.shape[-1] != keys.shape[-1]:
        raise ValueError(f"expected queries and keys of one width, got {queries.shape[-1]} and {keys.shape[-1]}")
    if queries.shape[0] != keys.shape[0]:
        raise ValueError(f"expected queries and keys of one batch size, got {queries.shape[0]} and {keys.shape[0]}")
    if keys.shape[:3] != values.shape[:3]:
        raise ValueError(f"expected one value for each key, got shapes {shapes[1]} and {shapes[2]}")
    if queries.shape[1] % keys.shape[1]:
        raise ValueError(f"expected key heads to divide query heads, got {keys.shape[1]} and {queries.shape[1]}")
    scores = (*queries.shape[:3], keys.shape[2])
    for name, tensor in (("mask", mask), ("bias", bias)):
        if tensor is not None and not _broadcasts(tuple(tensor.shape), scores):
            raise ValueError(f"{name}: expected a shape that broadcasts to {scores}, got {tuple(tensor.shape)}")


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    pairs = zip(reversed(shape), reversed(to), strict=False)
    return len(shape) <= len(to) and all(size in (1, wanted) for size, wanted in pairs)

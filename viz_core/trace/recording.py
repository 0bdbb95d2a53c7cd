"""The one door of all attention, and the one way back from queries and keys to weights.

Every model hands its queries, keys and values to `attend`. Inside a `record()` block the
call is kept as references to queries and keys after projection, never as a map; any map,
tile or thumbnail is recomputed exactly when someone looks at it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from viz_core.trace.call import AttentionCall
from viz_core.trace.source import Bias, Direct, Mask, Projected, Source, attend_in_blocks, causal_mask

__all__ = ["AttentionCall", "Source", "Trace", "attend", "record", "record_weights", "unrecorded"]


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
        projected = Projected(queries, keys, mask, bias, causal, scale, softcap)
        return _attend_in_graph(projected, values, dropout, trace, site)
    if trace is not None:
        kept_bias = None if bias is None else bias.detach()
        trace.add(Projected(queries.detach(), keys.detach(), mask, kept_bias, causal, scale, softcap), site)
    if softcap is not None:
        return attend_in_blocks(Projected(queries, keys, mask, bias, causal, scale, softcap), values, dropout)

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
        trace.add(Direct(weights.detach()), site)


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

    def add(self, source: Source, site: str | None) -> None:
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


_recorder: ContextVar[Trace | None] = ContextVar("recorder", default=None)


def _attend_in_graph(
    source: Projected, values: Tensor, dropout: float, trace: Trace, site: str | None
) -> Float[Tensor, "batch heads queries v"]:
    """Weights times values, with the weights kept as they are in the graph, and a leaf where nothing leads to them."""
    _, num_heads, num_queries, _ = source.shape
    weights = source.rows(slice(0, num_heads), slice(0, num_queries))
    if torch.is_grad_enabled() and not weights.requires_grad:
        weights.requires_grad_()
    trace.add(Direct(weights), site)
    values = values.repeat_interleave(num_heads // values.shape[1], dim=1)
    return F.dropout(weights, dropout).to(values.dtype) @ values


def _combine(mask: Mask | None, bias: Bias | None, causal: bool, queries: Tensor, keys: Tensor) -> Tensor | None:
    """One attn_mask for the kernel: boolean where it can be, additive where there is a bias."""
    if causal:
        past = causal_mask(queries.shape[2], keys.shape[2], queries.device)
        mask = past if mask is None else mask & past
    if bias is None or mask is None:
        return mask if bias is None else bias.to(queries.dtype)
    return torch.where(mask, bias, -torch.inf).to(queries.dtype)


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

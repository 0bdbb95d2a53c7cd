"""From queries and keys to attention weights: the formula, in the one place of the library that computes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from viz_core.trace.shapes import check_scores

Mask: TypeAlias = Bool[Tensor, "#batch #heads #queries #keys"]
Bias: TypeAlias = Float[Tensor, "#batch #heads #queries #keys"]


def attention_weights(
    queries: Float[Tensor, "batch heads queries d"],
    keys: Float[Tensor, "batch key_heads keys d"],
    mask: Mask | None = None,
    bias: Bias | None = None,
    causal: bool = False,
    scale: float | None = None,
    softcap: float | None = None,
    edit: Callable[[Tensor], Tensor] | None = None,
) -> Float[Tensor, "batch heads queries keys"]:
    """softmax(scale Q K^T + bias) over the keys that the mask allows (Vaswani 2017, equation 1).

    Args:
        mask: True where a query may look; broadcast over batch, heads and queries.
        bias: added to the scaled scores (position biases, additive masks).
        causal: query i of q sees key j of k only if j <= i + (k - q): the last query is the newest step.
        scale: 1 / sqrt(d) unless given.
        softcap: scaled scores s become c tanh(s / c), so none exceeds c (Gemma 2, section 2).
        edit: what an intervention makes of the scores, the last thing before the softmax.

    Fewer key heads than query heads are grouped queries: each key head serves heads / key_heads neighbouring
    query heads (Ainslie 2023, section 2.2).

    Returns:
        Rows that sum to 1; zeros where no key may be seen. In float32, or in the type of wider queries.

    Raises:
        ValueError: if queries, keys and bias are not floating-point tensors whose shapes fit together, on one device;
            the mask is not boolean; scale is no number, or softcap not positive.
    """
    check_scores(queries, keys, mask, bias, softcap, scale)
    wide = torch.promote_types(queries.dtype, torch.float32)  # half precision is too coarse for exp
    scale = queries.shape[-1] ** -0.5 if scale is None else scale
    group = queries.shape[1] // max(1, keys.shape[1])  # neighbouring heads that share a key head
    Q, K = queries.to(wide).unflatten(1, (keys.shape[1], group)), keys.to(wide).unsqueeze(2)
    scores = (scale * Q @ K.mT).flatten(1, 2)
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if bias is not None:
        scores = scores + bias.to(wide)
    if causal:
        past = causal_mask(queries.shape[2], keys.shape[2], queries.device)
        mask = past if mask is None else mask & past
    if mask is not None:
        scores = torch.where(mask, scores, -torch.inf)
    if edit is not None:
        scores = edit(scores)
    # Without mask, bias and edit every query sees a key.
    return torch.softmax(scores, dim=-1) if mask is None and bias is None and edit is None else row_softmax(scores)


def row_softmax(scores: Float[Tensor, "*batch keys"]) -> Float[Tensor, "*batch keys"]:
    """exp(s_j) / sum_l exp(s_l) along each row; a row of -inf alone, a query that sees no key, becomes zeros.

    Its gradients are finite there too: softmax of a row of -inf is 0 / 0, so where gradients are wanted such a row is
    given harmless scores before, and zeros after.
    """
    if not scores.shape[-1]:
        return scores
    empty = scores.amax(dim=-1, keepdim=True) == -torch.inf
    if scores.requires_grad:
        return torch.softmax(scores.masked_fill(empty, 0.0), dim=-1).masked_fill(empty, 0.0)
    return torch.softmax(scores, dim=-1).masked_fill_(empty, 0.0)


def causal_mask(
    num_queries: int,
    num_keys: int,
    device: torch.device | None = None,
    rows: slice = slice(None),
    columns: slice = slice(None),
) -> Bool[Tensor, "rows columns"]:
    """True where query i may see key j, j <= i + (keys - queries); of these rows and columns alone, never more."""
    newest = torch.arange(num_queries, device=device)[rows] + num_keys - num_queries
    return torch.arange(num_keys, device=device)[columns] <= newest[:, None]

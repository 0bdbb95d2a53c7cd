"""Attention weights from queries and keys, in the one place that computes them, and what masks say about padding."""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import TypeAlias

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from viz_core.trace.arguments import check_axes, check_scores, described, with_four_axes

Mask: TypeAlias = Bool[Tensor, "#batch #heads #queries #keys"]
Bias: TypeAlias = Float[Tensor, "#batch #heads #queries #keys"]

MASKED_SCORE = -6e4
"""Scores up to this one are masked. Additive masks use the least number of a type: float16's is -65,504."""


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
    """Return softmax(scale Q K^T + bias) over the keys that the mask allows (Vaswani 2017, equation 1).

    Args:
        mask: True where a query may attend; broadcast over batch, heads and queries.
        bias: added to the scaled scores (position biases, additive masks).
        causal: query i of q attends to key j of k only if j <= i + (k - q): the last query is the newest step.
        scale: 1 / sqrt(d) unless given.
        softcap: scaled scores s become c tanh(s / c), so none exceeds c (Gemma 2, section 2).
        edit: applied to the scores last, before the softmax: an intervention.

    Fewer key heads than query heads are grouped queries: each key head serves heads / key_heads neighbouring
    query heads (Ainslie 2023, section 2.2).

    Returns:
        Rows that sum to 1; zeros where every key is masked. In float32, or in the type of wider queries.

    Raises:
        ValueError: if queries, keys and bias are not floating-point tensors whose shapes fit together, on one device;
            the mask is not boolean; scale is not a number, or softcap not positive.
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
    # Without mask, bias and edit no row is empty, where each query has a key at its own place or before.
    none_empty = mask is None and bias is None and edit is None and not (causal and queries.shape[2] > keys.shape[2])
    if mask is not None:
        scores = torch.where(mask, scores, -torch.inf)
    if causal:  # no key before the last q is later than any of q queries; adding takes a quarter of masked_fill's time
        q, k = queries.shape[2], keys.shape[2]
        later = scores.new_full((q, min(q, k)), -torch.inf).triu(1 + min(q, k) - q)
        scores.tril_(k - q)[..., k - min(q, k) :].add_(later)  # scores of later keys become 0, then -inf
    if edit is not None:
        scores = edit(scores)
    return torch.softmax(scores, dim=-1) if none_empty else row_softmax(scores)


def row_softmax(scores: Float[Tensor, "*batch keys"]) -> Float[Tensor, "*batch keys"]:
    """Return exp(s_j) / sum_l exp(s_l) along each row; a row of -inf alone, whose keys are all masked, becomes zeros.

    Gradients are finite there too: softmax of a row of -inf is 0 / 0, so where gradients are needed the scores of such
    a row are set to 0 before the softmax, and its weights to 0 after.
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
    """Return True where query i may attend to key j, j <= i + (keys - queries), for these rows and columns alone."""
    newest = torch.arange(num_queries, device=device)[rows] + num_keys - num_queries
    return torch.arange(num_keys, device=device)[columns] <= newest[:, None]


def is_masked(scores: Float[Tensor, "*scores"]) -> Bool[Tensor, "*scores"]:
    """Return True where a score says that its key is masked, by -inf or by the least number of a type."""
    return scores <= MASKED_SCORE


TokenMask: TypeAlias = Bool[Tensor, "batch _"]
"""True where there is a token, False at padding."""


def allowed_keys(mask: Mask | None, bias: Bias | None, batch: int, num_keys: int) -> TokenMask | None:
    """Return True from the first to the last key of each text that some query may attend to; the rest is padding.

    None where there is neither a mask nor a bias that masks: every key is a token.
    """
    allowed = None if mask is None else _over_keys(mask)
    if bias is not None:
        unmasked = _over_keys(~is_masked(bias if mask is None else torch.where(mask, bias, -torch.inf)))
        allowed = unmasked if allowed is None else unmasked & allowed
    if allowed is None:
        return None
    begun, unfinished = allowed.cumsum(dim=-1) > 0, allowed.flip(-1).cumsum(dim=-1).flip(-1) > 0
    return (begun & unfinished).expand(batch, num_keys)


packed_texts: ContextVar[tuple[object, Int[Tensor, "#batch n"]] | None] = ContextVar("packed_texts", default=None)
"""The model whose pass runs, and the number of each token's text, where a row holds several: positions restart."""


def text_numbers(positions: Int[Tensor, "#batch n"], tokens: TokenMask | None) -> Int[Tensor, "#batch n"] | None:
    """Return the number of each token's text, counted up where positions restart; None if each row is one text."""
    restarts = positions[:, 1:] <= positions[:, :-1]
    if tokens is not None and tokens.shape[-1] == positions.shape[-1]:
        restarts = restarts & tokens[:, 1:] & tokens[:, :-1]
    return F.pad(restarts, (1, 0)).cumsum(dim=-1) if bool(restarts.any()) else None


def text_positions(tokens: TokenMask | None, n: int, device: torch.device | None = None) -> Int[Tensor, "#batch n"]:
    """Return positions counted from the first token of each text; -1 at padding before it."""
    packed = packed_texts.get()
    if packed is not None and (texts := packed[1]).shape[-1] == n:
        first = (texts[:, None] < texts[..., None]).sum(dim=-1)
        return (torch.arange(n, device=texts.device) - first).to(device)
    positions = torch.arange(n, device=device)[None]
    return positions if tokens is None else (positions - first_tokens(tokens)[:, None]).clamp_min(-1)


def first_tokens(tokens: TokenMask) -> Int[Tensor, " batch"]:
    """Return the index of the first token of each text; 0 where there is none."""
    return tokens.long().argmax(dim=-1) if tokens.shape[-1] else tokens.new_zeros(len(tokens), dtype=torch.long)


def without_padding_before(
    rows: Float[Tensor, "batch heads n v"], tokens: Bool[Tensor, "batch n"]
) -> Float[Tensor, "batch heads n v"]:
    """Return the rows of each text from its first token on; what stood before it comes last."""
    first = first_tokens(tokens).tolist()
    return torch.stack([text.roll(-start, dims=1) if start else text for text, start in zip(rows, first, strict=True)])


def check_token_mask(given: object) -> dict[str | None, TokenMask]:
    """Return token masks by stack ("encoder", "decoder"); one mask alone, for all stacks, is under None.

    ValueError unless it is a boolean tensor (batch, n), or several by stack.
    """
    named: Mapping[str | None, object] = given if isinstance(given, Mapping) else {None: given}
    for tokens in named.values():
        if not isinstance(tokens, Tensor) or tokens.dtype != torch.bool:
            raise ValueError(f"token_mask: expected booleans, True where there is a token, got {described(tokens)}")
        check_axes("batch n", token_mask=tokens)
        if bool((tokens[:, 1:] > tokens[:, :-1]).sum(dim=-1).add(tokens[:, :1].sum(dim=-1)).gt(1).any()):
            raise ValueError("token_mask: expected padding before or after the tokens of a text, got some between them")
    return dict(named)  # type: ignore[arg-type]


def _over_keys(allowed: Bool[Tensor, "*shape"]) -> Bool[Tensor, "batch keys"]:
    """Return whether any head and query of a text allows each key, from a mask that broadcasts to four axes."""
    return with_four_axes(allowed).any(dim=1).any(dim=1)

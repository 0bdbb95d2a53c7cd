"""The one entry point for all attention.

Every model calls `attend` with its queries, keys and values. Inside a `record()` block the call is stored as references
to queries and keys after projection, never as a map.
"""

from contextlib import nullcontext
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from viz_core.torch_internals import refuse_transformed
from viz_core.trace.arguments import cast_inputs, check_number, check_scores, check_values, with_gradient
from viz_core.trace.intervene import edits_at, is_editing, without_edits
from viz_core.trace.outputs import edited_output, pooled, pooled_in_blocks
from viz_core.trace.record import no_recording
from viz_core.trace.source import Direct, Projected, stored
from viz_core.trace.states import on_attention
from viz_core.trace.trace import Trace, current_trace, recorder
from viz_core.trace.weights import Bias, Mask, TokenMask, allowed_keys, causal_mask


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
    key_tokens: TokenMask | None = None,
) -> Float[Tensor, "batch heads queries v"]:
    """Return scaled dot-product attention by torch's fused kernel; recorded within `record()`.

    attention_weights(Q, K) V = softmax(scale * Q K^T + bias, over the keys the mask allows) V
    (Vaswani 2017, equation 1)

    Args:
        mask: True where a query may attend; broadcast over batch, heads and queries.
        bias: added to the scaled scores (position biases, additive masks).
        causal: query i of q attends to key j of k only if j <= i + (k - q): the last query is
            the newest step, as when decoding with a cache.
        scale: 1 / sqrt(d) unless given.
        softcap: scaled scores s become c tanh(s / c), so none exceeds c (Gemma 2, section 2). No fused
            kernel does that; the weights are computed for a block of queries at a time.
        dropout: probability of dropping a weight; recorded weights are those before dropout.
        site: the name of this call in a trace; "attention.N" unless given.
        key_tokens: True where a key is a token, whose positions edits count; other keys they leave in sight. Unless
            given, the keys that some query may attend to.

    Fewer key heads than query heads are grouped queries (Ainslie 2023): each key head serves
    heads / key_heads neighbouring query heads. A query whose keys are all masked gets zeros.
    Heads with an edit of an `intervene` block are recomputed. Under `torch.autocast` queries, keys and values are cast
    as by torch's kernel, and recorded so.

    Raises:
        ValueError: if queries, keys, values and bias are not floating-point tensors whose shapes fit together, of one
            device and (but the bias) of one type; the mask is not boolean; scale is not a number, softcap not positive
            or dropout not from 0 to 1; within `record()`, also in `torch.func`; if an intervention names a head
            that the call does not have.
    """
    on_attention(site)
    queries, keys, values = cast_inputs(queries, keys, values)
    check_scores(queries, keys, mask, bias, softcap, scale)
    check_values(keys, values)
    check_number(0, 1, dropout=dropout)
    if bias is not None and bias.dtype != queries.dtype:
        bias = bias.to(queries.dtype)  # as the kernel adds it: in float16, what lies below -65,504 masks
    scale = queries.shape[-1] ** -0.5 if scale is None else scale
    (batch, num_heads, num_queries, _), num_keys, trace = queries.shape, keys.shape[2], current_trace(site)

    def tokens() -> TokenMask | None:
        if key_tokens is not None:
            return key_tokens
        given = None if trace is None else trace.tokens_given(site, batch, num_queries, num_keys)[1]
        return allowed_keys(mask, bias, batch, num_keys) if given is None else given

    edits = edits_at(site, (batch, num_heads, num_queries, num_keys), causal, tokens, queries.device)
    causal = causal and num_queries > 1  # one new step attends to everything before it
    projected = partial(Projected, queries, keys, mask, bias, causal, scale, softcap)
    if trace is not None and trace.differentiable:
        return _attend_in_graph(projected(edits=edits), values, dropout, trace, site)
    if trace is not None:
        own = values if trace.values else None
        source = stored(queries, keys, own, mask, bias, causal=causal, scale=scale, softcap=softcap, edits=edits)
        trace.add(source, site)
    if softcap is not None:
        output = pooled_in_blocks(projected(), values, dropout)
    else:
        # torch.export makes symbols of sizes, and torch.jit.trace tensors
        fused_causal = bool(causal and num_queries == num_keys and mask is None and bias is None)
        # Modes that record or edit plain PyTorch must not see this call.
        with no_recording() if trace is not None else nullcontext(), without_edits() if is_editing() else nullcontext():
            output = F.scaled_dot_product_attention(
                queries,
                keys,
                values,
                attn_mask=None if fused_causal else _combine(mask, bias, causal, queries, keys),
                dropout_p=dropout,
                is_causal=fused_causal,
                scale=scale,
                enable_gqa=bool(num_heads != keys.shape[1]),
            )
    return output if edits is None else edited_output(output, projected(edits=edits), values, dropout)


def attend_unobserved(
    queries: Float[Tensor, "batch heads queries d"],
    keys: Float[Tensor, "batch heads keys d"],
    values: Float[Tensor, "batch heads keys v"],
    mask: Mask | None = None,
) -> Float[Tensor, "batch heads queries v"]:
    """Return what `attend` returns where nobody looks (`is_observed`), for inputs that fit: its kernel alone."""
    return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)


def is_observed() -> bool:
    """Return whether this thread or task records or edits, so that a call of attention must go through `attend`."""
    return recorder.get() is not None or is_editing()


def _attend_in_graph(
    source: Projected, values: Tensor, dropout: float, trace: Trace, site: str | None
) -> Float[Tensor, "batch heads queries v"]:
    """Return weights times values, with the weights in the graph: a leaf if nothing in the graph leads to them."""
    refuse_transformed([*source.tensors(), values], site)
    _, num_heads, num_queries, _ = source.shape
    with no_recording():
        weights = with_gradient(source.rows(slice(0, num_heads), slice(0, num_queries)))
    trace.add(Direct(weights), site)
    output = pooled(weights, values, dropout)
    if source.edits is None:
        return output
    return torch.stack([source.edits.edit_output(part, head) for head, part in enumerate(output.unbind(dim=1))], dim=1)


def _combine(mask: Mask | None, bias: Bias | None, causal: bool, queries: Tensor, keys: Tensor) -> Tensor | None:
    """Return one attn_mask for the kernel: additive with a bias, otherwise boolean."""
    if causal:
        past = causal_mask(queries.shape[2], keys.shape[2], queries.device)
        mask = past if mask is None else mask & past
    if bias is None or mask is None:
        return mask if bias is None else bias
    return torch.where(mask, bias, -torch.inf)

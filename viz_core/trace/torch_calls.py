"""Queries, keys and masks from the arguments of torch's own attention functions.

There is one reader for each function; its arguments have torch's names, and torch's code is the source of each rule.
Projections within torch's function are computed again.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import reduce
from inspect import signature
from operator import or_
from typing import Any

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor

from viz_core.torch_internals import native_multi_head_attention, transformer_encoder_layer
from viz_core.trace.arguments import cast_inputs, materialized, with_four_axes
from viz_core.trace.source import Projected, stored
from viz_core.trace.weights import Bias, Mask, allowed_keys


def from_kernel(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    **_others: Any,
) -> Projected:
    """`F.scaled_dot_product_attention`: query (..., heads, queries, d), key (..., key_heads, keys, d).

    A boolean mask is True where a query may attend; any other mask is added. Causal: query i attends to keys 0 to i.
    Three axes are the heads of one batch; with more than four, all axes before the heads are the batch.
    """
    (query, real_queries), (key, real_keys) = _padded(query), _padded(key)
    query, key = map(with_four_axes, (query, key))
    if not enable_gqa:
        query = query.expand(*query.shape[:-3], max(query.shape[-3], key.shape[-3]), -1, -1)
    lead = torch.broadcast_shapes(query.shape[:-3], key.shape[:-3])
    mask, bias = _not_padding(real_queries, real_keys), None
    if attn_mask is not None:
        attn_mask = materialized(attn_mask, query.device)
        given = _flat(with_four_axes(attn_mask), lead)
        mask, bias = (_both(mask, given), None) if given.dtype == torch.bool else (mask, given)
    values = _flat(with_four_axes(_padded(value)[0]), lead)
    return _projected(_flat(query, lead), _flat(key, lead), values, mask, bias, is_causal, scale)


def from_multi_head(
    query: Float[Tensor, "queries *batch q"],
    key: Float[Tensor, "keys *batch k"],
    value: Float[Tensor, "keys *batch v"],
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Any = None,
    k_proj_weight: Any = None,
    v_proj_weight: Any = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    is_causal: bool = False,
    **_others: Any,
) -> Projected:
    """`F.multi_head_attention_forward`, and with it `nn.MultiheadAttention`.

    A boolean mask is True where a query may NOT attend; any other mask is added. `bias_k` is one more key at the end,
    and `add_zero_attn` one of zeros; neither is ever masked. `is_causal` holds without padding and without returned
    weights; otherwise `attn_mask` does.
    """
    if query.dim() == 2:  # no batch
        query, key, value = query[:, None], key[:, None], value[:, None]
        key_padding_mask = None if key_padding_mask is None else key_padding_mask[None]
    own = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else _thirds(in_proj_weight)
    queries, keys, values = map(F.linear, (query, key, value), own, _thirds(in_proj_bias))
    if bias_k is not None:
        keys = torch.cat([keys, bias_k.expand(1, keys.shape[1], -1)])
    if bias_v is not None:
        values = torch.cat([values, bias_v.expand(1, values.shape[1], -1)])
    queries, keys, values = (rearrange(x, "n b (h d) -> b h n d", h=num_heads) for x in (queries, keys, values))
    keys = keys if static_k is None else static_k.unflatten(0, (-1, num_heads))
    values = values if static_v is None else static_v.unflatten(0, (-1, num_heads))
    if add_zero_attn:
        keys, values = (F.pad(x, (0, 0, 0, 1)) for x in (keys, values))

    causal = is_causal and key_padding_mask is None and not need_weights
    masks = []
    if attn_mask is not None and not causal:
        masks.append(attn_mask[None, None] if attn_mask.dim() == 2 else attn_mask.unflatten(0, (-1, num_heads)))
    if key_padding_mask is not None:
        masks.append(key_padding_mask[:, None, None, :])
    more = (bias_k is not None) + add_zero_attn
    masks = [F.pad(mask, (0, more)) for mask in masks] if more else masks
    hidden, added = ([m for m in masks if (m.dtype == torch.bool) is boolean] for boolean in (True, False))
    mask, bias = ~reduce(or_, hidden) if hidden else None, sum(added[1:], added[0]) if added else None
    source = _projected(queries, keys, values, mask, bias, causal)
    return _nan_where_empty(source) if need_weights else source


def from_fast_path(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor | None,
    mask: Tensor | None = None,
    mask_type: int | None = None,
    **_others: Any,
) -> Projected:
    """The kernel of the fast path of `nn.MultiheadAttention`; batch first, nested or not.

    A key is masked where the mask is not zero: (queries, keys) for type 0, (batch, keys) for type 1, all four axes for
    type 2. A nested batch, which has no mask, is padded to its longest member, and the padding masked.
    """
    (query, real_queries), (key, real_keys), (value, _) = _padded(query), _padded(key), _padded(value)
    projected = map(F.linear, (query, key, value), _thirds(qkv_weight), _thirds(qkv_bias))
    queries, keys, values = (rearrange(x, "b n (h d) -> b h n d", h=num_head) for x in projected)
    if mask is None:
        return _projected(queries, keys, values, _not_padding(real_queries, real_keys), None, False)
    mask = mask[:, None, None, :] if mask_type == 1 else with_four_axes(mask)
    return _nan_where_empty(_projected(queries, keys, values, ~mask.bool(), None, False))


def from_encoder_layer(
    src: Tensor,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
    **_others: Any,
) -> Projected:
    """The kernel of the fast path of `nn.TransformerEncoderLayer`; masks as in `from_fast_path`."""
    x = F.layer_norm(src, norm_weight_1.shape, norm_weight_1, norm_bias_1, eps) if norm_first else src
    return from_fast_path(x, x, x, num_heads, qkv_weight, qkv_bias, mask, mask_type)


READERS: dict[Callable[..., Any], tuple[Callable[..., Projected], Iterable[str]]] = {
    F.scaled_dot_product_attention: (
        from_kernel,
        "query key value attn_mask dropout_p is_causal scale enable_gqa".split(),
    ),
    F.multi_head_attention_forward: (from_multi_head, tuple(signature(F.multi_head_attention_forward).parameters)),
    native_multi_head_attention: (
        from_fast_path,
        "query key value embed_dim num_head qkv_weight qkv_bias proj_weight proj_bias mask need_weights "
        "average_attn_weights mask_type".split(),
    ),
    transformer_encoder_layer: (
        from_encoder_layer,
        "src embed_dim num_heads qkv_weight qkv_bias proj_weight proj_bias use_gelu norm_first eps norm_weight_1 "
        "norm_bias_1 norm_weight_2 norm_bias_2 ffn_weight_1 ffn_bias_1 ffn_weight_2 ffn_bias_2 mask mask_type".split(),
    ),
}
"""The reader of each of torch's attention functions, and the names of its positional arguments."""


def named_arguments(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return all arguments of a call of one of torch's attention functions by name."""
    return {**dict(zip(READERS[function][1], args, strict=False)), **kwargs}


def read_call(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], values: bool = False
) -> Projected:
    """Return the source of a call of one of torch's attention functions, without its graph, with values if asked."""
    with torch.no_grad():
        source = read_in_graph(function, named_arguments(function, args, kwargs))
    own = source.values if values else None
    settings = {"causal": source.causal, "scale": source.scale, "key_tokens": source.key_tokens}
    return stored(source.queries, source.keys, own, source.mask, source.bias, **settings)


def read_in_graph(function: Callable[..., Any], arguments: dict[str, Any]) -> Projected:
    """Return the source of a call of one of torch's attention functions, with values, in the graph of its arguments."""
    return READERS[function][0](**arguments)


def project_heads(
    heads: Float[Tensor, "batch heads queries v"], arguments: dict[str, Any], bias: Tensor | None
) -> Float[Tensor, "queries *batch d"]:
    """Return what the output projection of `F.multi_head_attention_forward` makes of what heads write."""
    output = F.linear(rearrange(heads, "b h n v -> n b (h v)"), arguments["out_proj_weight"], bias)
    return output[:, 0] if arguments["query"].dim() == 2 else output


def returned_weights(
    weights: Float[Tensor, "batch heads queries keys"], arguments: dict[str, Any]
) -> Float[Tensor, "*axes queries keys"] | None:
    """Return weights as `F.multi_head_attention_forward` does: of each head or their mean; None if not asked for."""
    if not arguments.get("need_weights", True):
        return None
    weights = weights.mean(dim=1) if arguments.get("average_attn_weights", True) else weights
    return weights[0] if arguments["query"].dim() == 2 else weights


def _projected(
    queries: Float[Tensor, "batch heads queries d"],
    keys: Float[Tensor, "batch key_heads keys d"],
    values: Float[Tensor, "batch key_heads keys v"],
    mask: Mask | None,
    bias: Bias | None,
    causal: bool,
    scale: float | None = None,
) -> Projected:
    """Return the source; torch's causal query i attends to keys 0 to i, for any number of keys."""
    shape = queries.shape[2], keys.shape[2]
    if causal and shape[0] != shape[1]:
        mask, causal = _both(mask, queries.new_ones(shape, dtype=torch.bool).tril()[None, None]), False
    queries, keys, values = cast_inputs(queries, keys, values)
    scale = queries.shape[-1] ** -0.5 if scale is None else scale
    return Projected(queries, keys, mask, bias, causal, scale, values=values)


def _nan_where_empty(source: Projected) -> Projected:
    """Return the source with NaN, as torch's softmax gives it, for the weights of queries that may attend to no key."""
    allowed = source.mask
    if source.bias is not None:
        allowed = _both(allowed, source.bias > -torch.inf)
    if allowed is None or allowed.is_meta or not bool((empty := ~allowed.any(dim=-1, keepdim=True)).any()):
        return source
    batch, _, _, num_keys = source.shape
    bias = torch.zeros((), dtype=source.queries.dtype, device=empty.device) if source.bias is None else source.bias
    return replace(
        source,
        mask=None if source.mask is None else source.mask | empty,
        bias=torch.where(empty, torch.nan, bias),
        key_tokens=allowed_keys(source.mask, source.bias, batch, num_keys),
    )


def _flat(x: Tensor, lead: torch.Size) -> Tensor:
    """Return a tensor with all axes before the last three merged."""
    return x.expand(*lead, *x.shape[-3:]).flatten(0, -4)


def _thirds(packed: Tensor | None) -> Any:
    """Return the queries', the keys' and the values' third of a packed tensor; None three times without one."""
    return (None, None, None) if packed is None else packed.chunk(3)


def _both(mask: Mask | None, other: Mask | None) -> Mask | None:
    return other if mask is None else mask if other is None else mask & other


def _padded(x: Tensor) -> tuple[Tensor, Bool[Tensor, "batch n"] | None]:
    """Return a nested batch padded with zeros to its longest member, and the mask of its tokens; None for all."""
    if not x.is_nested:
        return x, None
    members = x.unbind()
    lengths = torch.tensor([member.shape[-2] for member in members], device=members[0].device)
    longest = int(lengths.max())
    filled = torch.stack([F.pad(member, (0, 0, 0, longest - member.shape[-2])) for member in members])
    return filled, torch.arange(longest, device=lengths.device) < lengths[:, None]


def _not_padding(
    queries: Bool[Tensor, "batch queries"] | None, keys: Bool[Tensor, "batch keys"] | None
) -> Bool[Tensor, "batch 1 queries keys"] | None:
    return None if queries is None or keys is None else (queries[:, :, None] & keys[:, None, :])[:, None]

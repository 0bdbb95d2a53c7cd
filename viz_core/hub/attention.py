"""Attention of Hugging Face models through our one door: registered once, called by every model that asks for it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from viz_core.runtime.interruption import may_end
from viz_core.trace import attend, site_of

ATTENTION_IMPLEMENTATION = "attention-atlas"
"""The name under which transformers finds our attention: `attn_implementation=ATTENTION_IMPLEMENTATION`."""


@lru_cache(maxsize=1)
def register() -> None:
    """Make our attention known to transformers. Masks are those of its fused attention: boolean, or none at all."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(ATTENTION_IMPLEMENTATION, attention_forward)
    AttentionMaskInterface.register(ATTENTION_IMPLEMENTATION, sdpa_mask)


def attention_forward(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    position_bias: Tensor | None = None,
    softcap: float | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """What transformers calls in place of its own attention; the same result, by `attend`.

    Args:
        query: (batch, heads, queries, d); key and value may have fewer heads.
        attention_mask: boolean (True: may look) or additive; None together with a causal module means causal.
        position_bias: added to the scaled scores, as T5 does.
        softcap: the largest scaled score, as in Gemma 2.

    Returns:
        (batch, queries, heads, d), and None where transformers may put weights.

    Raises:
        ValueError: if the model wants attention sinks: their weights would not sum to 1.
    """
    may_end()  # between two layers of any model
    if others.get("s_aux") is not None:
        raise ValueError("attention sinks (s_aux): expected none, got some; their weights do not sum to 1")
    mask, bias = (attention_mask, None) if _is_boolean(attention_mask) else (None, attention_mask)
    if position_bias is not None:
        bias = position_bias if bias is None else bias + position_bias
    causal = bool(getattr(module, "is_causal", True) if is_causal is None else is_causal) and attention_mask is None
    num_queries = query.shape[2]
    if causal and 1 < num_queries < key.shape[2]:  # a first pass over a cache whose end is still empty
        key, value = key[:, :, :num_queries], value[:, :, :num_queries]
        bias = bias if bias is None else bias[..., :num_queries]
    output = attend(
        query,
        key,
        value,
        mask=mask,
        bias=bias,
        causal=causal,
        scale=scaling,
        softcap=softcap,
        dropout=dropout,
        site=site_of(module),
    )
    return output.transpose(1, 2).contiguous(), None


def _is_boolean(mask: Tensor | None) -> bool:
    return mask is None or mask.dtype == torch.bool

"""Attention of Hugging Face models through our one door: registered once, called by every model that asks for it."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from viz_core.runtime.interruption import may_end
from viz_core.trace import attend

ATTENTION_IMPLEMENTATION = "attention-atlas"
"""The name under which transformers finds our attention: `attn_implementation=ATTENTION_IMPLEMENTATION`."""

_CROSS = re.compile(r"cross|encoder_attn|encdec", re.IGNORECASE)


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
        site=getattr(module, "attention_site", None),
    )
    return output.transpose(1, 2).contiguous(), None


def name_sites(model: nn.Module, stack: str | None) -> tuple[str, ...]:
    """Tell each attention module its site, once, at load: "encoder.0.self", "decoder.2.cross".

    Layer and kind are read off the module's place in the model ("decoder.block.2.layer.1.EncDecAttention"); an
    attention module within another has the name of the outer one, whichever of the two makes the call.

    Args:
        stack: what a model's one stack is called; None for a model with an encoder and a decoder.

    Returns:
        The sites in the order of the model's parts, each once; none for a model without attention.
    """
    sites: dict[str, None] = {}
    for path, module in model.named_modules():
        layer = re.search(r"(?:^|\.)(\d+)\.", path + ".")
        if layer is None or "attention" not in type(module).__name__.lower():
            continue
        site = f"{_stack(path, stack)}.{layer[1]}.{'cross' if _CROSS.search(path) else 'self'}"
        module.attention_site = site  # a name for good, and nothing of any call
        sites[site] = None
    return tuple(sites)


def _stack(path: str, stack: str | None) -> str:
    if "vision" in path:  # the eyes of a model that also reads pictures
        return "vision"
    return stack or ("decoder" if "decoder" in path.split(".") else "encoder")


def _is_boolean(mask: Tensor | None) -> bool:
    return mask is None or mask.dtype == torch.bool

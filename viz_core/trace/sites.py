"""Names of attention layers, set once, when a model is built or loaded.

A layer does not know its model. The code that builds a model calls `name_sites`, for models of this library and of
Hugging Face alike; a layer without a name is "attention.N" in a trace.
"""

from __future__ import annotations

import re

from torch import nn

from viz_core.trace.arguments import described

_LAYER = re.compile(r"(?:^|\.)(?:block|encoder_layer_)?(\d+)\.")  # "layer.2.", "blks.block2.", "encoder_layer_2."
# MLA: DeepSeek's multi-head latent attention. Talking heads mix the result of their softmax.
_ATTENTION = re.compile(r"attention|(?<!TalkingHead)attn(?!Adapter|Block)|(M[HS]+A|MLA)$", re.IGNORECASE)
_CROSS = re.compile(r"cross|encoder_attn|encdec|attention2|multihead_attn", re.IGNORECASE)


def name_sites(model: nn.Module, stack: str | None = None) -> tuple[str, ...]:
    """Set the site of each attention layer of a model: "encoder.0.self", "decoder.2.cross".

    Args:
        stack: the name of a model's only stack; None for a model with an encoder and a decoder.

    Returns:
        The sites in the order of the model's parts, each once; none for a model without attention in layers.
    """
    sites = find_sites(model, stack)
    for layer, site in sites.items():
        name_site(layer, site)
    return tuple(dict.fromkeys(sites.values()))


def find_sites(model: nn.Module, stack: str | None = None) -> dict[nn.Module, str]:
    """Return the site of each attention layer of a model, in the order of its modules, without setting it.

    Layer and kind follow from the module's path ("decoder.block.2.layer.1.EncDecAttention"); an attention layer within
    another has the name of the outer one, whichever of the two makes the call. torch's own decoders are recognised by
    their class.

    Args:
        stack: as in `name_sites`.

    Raises:
        ValueError: if model is no nn.Module.
    """
    if not isinstance(model, nn.Module):
        raise ValueError(f"model: expected an nn.Module, got {described(model)}")
    sites: dict[nn.Module, str] = {}
    decoders: list[str] = []
    for path, module in model.named_modules():
        if isinstance(module, nn.TransformerDecoder | nn.TransformerDecoderLayer):
            decoders.append(path and path + ".")
        layer = _LAYER.search(path + ".")
        if layer is None or not _ATTENTION.search(type(module).__name__):
            continue
        known = stack or ("decoder" if any(path.startswith(prefix) for prefix in decoders) else None)
        sites[module] = f"{stack_of(path, known)}.{layer[1]}.{'cross' if _CROSS.search(path) else 'self'}"
    return sites


def name_site(layer: nn.Module, site: str) -> None:
    """Set the site of one layer: an attribute outside its state dict."""
    layer.attention_site = site  # type: ignore[assignment]


def site_of(layer: nn.Module) -> str | None:
    """Return the site of a layer; None if it has none."""
    return getattr(layer, "attention_site", None)


def stack_of(path: str, stack: str | None = None) -> str:
    """Return the stack of a module by its path: "encoder", "decoder" or "vision".

    Args:
        stack: the name of a model's only stack beside a vision tower; None for an encoder and a decoder.
    """
    parts = path.split(".")
    if "vision" in path or "visual" in parts:  # the image encoder of a vision-language model
        return "vision"
    # A language model within another is a decoder, unless it has an encoder of its own.
    is_decoder = "decoder" in parts or ("language_model" in parts and "encoder" not in parts)
    return stack or ("decoder" if is_decoder else "encoder")

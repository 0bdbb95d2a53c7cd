"""Where in a model an attention layer stands: named from outside, once, when the model is built or loaded.

A layer knows nothing of the model around it. Whoever puts a model together calls `name_sites`, for models of
this library and of Hugging Face alike; a layer that nobody named is "attention.N" in a trace.
"""

from __future__ import annotations

import re

from torch import nn

from viz_core.trace.arguments import described

_LAYER = re.compile(r"(?:^|\.)(?:block|encoder_layer_)?(\d+)\.")  # "layer.2.", "blks.block2.", "encoder_layer_2."
# DeepSeek's multi-head latent attention has its own word. Talking heads mix what their softmax gave.
_ATTENTION = re.compile(r"attention|(?<!TalkingHead)attn(?!Adapter|Block)|(M[HS]+A|MLA)$", re.IGNORECASE)
_CROSS = re.compile(r"cross|encoder_attn|encdec|attention2|multihead_attn", re.IGNORECASE)


def name_sites(model: nn.Module, stack: str | None = None) -> tuple[str, ...]:
    """Tell each attention layer of a model its site: "encoder.0.self", "decoder.2.cross".

    Args:
        stack: what a model's one stack is called; None for a model with an encoder and a decoder.

    Returns:
        The sites in the order of the model's parts, each once; none for a model without attention in layers.

    Raises:
        ValueError: if that is no model of torch.
    """
    sites = find_sites(model, stack)
    for layer, site in sites.items():
        name_site(layer, site)
    return tuple(dict.fromkeys(sites.values()))


def find_sites(model: nn.Module, stack: str | None = None) -> dict[nn.Module, str]:
    """The site of each attention layer of a model, in the order of the model's parts; nobody is told.

    Layer and kind are read off the layer's place in the model ("decoder.block.2.layer.1.EncDecAttention"); an
    attention layer within another has the name of the outer one, whichever of the two makes the call. torch's own
    decoders are known as such, whatever their place is called.

    Args:
        stack: as in `name_sites`.

    Raises:
        ValueError: if that is no model of torch.
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
        known = stack or ("decoder" if any(path.startswith(place) for place in decoders) else None)
        sites[module] = f"{stack_of(path, known)}.{layer[1]}.{'cross' if _CROSS.search(path) else 'self'}"
    return sites


def name_site(layer: nn.Module, site: str) -> None:
    """Tell one layer its site: a name for good, no part of its state dict, and nothing of any call."""
    layer.attention_site = site  # type: ignore[assignment]


def site_of(layer: nn.Module) -> str | None:
    """The site a layer was told; None where it stands by itself."""
    return getattr(layer, "attention_site", None)


def stack_of(path: str, stack: str | None = None) -> str:
    """The stack that a part of a model belongs to, by its place: "encoder", "decoder" or "vision".

    Args:
        stack: what a model's one stack is called, beside a vision tower; None for an encoder and a decoder.
    """
    parts = path.split(".")
    if "vision" in path or "visual" in parts:  # the eyes of a model that also reads pictures
        return "vision"
    # A language model within another writes, unless it has an encoder of its own.
    writes = "decoder" in parts or ("language_model" in parts and "encoder" not in parts)
    return stack or ("decoder" if writes else "encoder")

"""A picture and a text compared, each read by a tower of its own (CLIP, Radford 2021; SigLIP, Zhai 2023)."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from viz_core.hub.engine import Engine
from viz_core.hub.errors import HubError
from viz_core.hub.run import Frame, HubRun
from viz_core.images.open_image import as_rgb


def compare(engine: Engine, text: str, image: Image.Image, most: int | None) -> HubRun:
    """One pass through both towers, recorded.

    Raises:
        HubError: if the text is empty or too long, or the picture cannot be prepared.
    """
    pixels = engine.processor.encode(image)
    grid = engine.processor.grid(pixels)
    inputs = {**_text(engine, text, most), "pixel_values": pixels.to(engine.device, engine.model.dtype)}
    ids = [int(i) for i in inputs["input_ids"][0]]
    result, trace = engine.recorded(inputs, max(len(ids), grid[0] * grid[1]))
    found = [call for call in trace if call.stack == "vision"]
    if not found:
        raise HubError(
            "No attention of {name} over the picture could be seen: its code has a way of its own.", name=engine.name
        )
    tokens = engine.processor.tokens(found[0].num_keys, grid)
    return HubRun(
        engine.tokenizer.read(ids),
        trace,
        similarities(engine, result),
        num_prompt_tokens=len(ids),
        image=as_rgb(image),
        inputs=inputs,
        num_unknown=engine.tokenizer.num_unknown(ids),
        frame=Frame(engine.processor.picture(pixels), grid, tokens),
    )


def similarities(engine: Engine, result: Any) -> Float[Tensor, "read"]:
    """Cosine of a text with a picture, -1 to 1, and then with each token of the picture that was not pooled.

    CLIP: cos(W_v norm(x_i), t), the class token's first. That is what the model was trained on: times exp(logit_scale)
    it is the model's own logit. A patch is read by the same norm and projection, for which it was not trained: where a
    thing stands its patches may well be the least like the word (Li 2023, "CLIP Surgery", section 3).

    SigLIP has no class token: a head of attention pools the patches, f(sum_i a_i W x_i), and that is the first. A patch
    is read by the same head looking at it alone, f(W x_i).
    """
    model, states = engine.model, result.vision_model_output.last_hidden_state[0]
    if pools_patches(engine):
        alone = model.vision_model.head(states[:, None])  # each patch a picture of one patch
        read = torch.cat((result.vision_model_output.pooler_output, alone))
    else:
        read = model.visual_projection(model.vision_model.post_layernorm(states))
    return F.cosine_similarity(read, result.text_embeds, dim=-1).float().cpu()


def pools_patches(engine: Engine) -> bool:
    """Whether a head of attention makes one vector of the patches, in place of a class token."""
    return engine.family.kind == "dual-encoder" and hasattr(engine.model.vision_model, "head")


def pooling_weights(engine: Engine, result: Any) -> Float[Tensor, "heads patches"]:
    """What each head of the pooling of a SigLIP gives to each patch: rows that sum to 1.

    One learned query, the probe, looks at all patches after the last layer (Zhai 2022, "Scaling Vision Transformers",
    section 2.2).

    Raises:
        ValueError: if the model pools no patches.
    """
    if not pools_patches(engine):
        raise ValueError(f"pooling_weights: expected a model that pools patches, got {engine.name}")
    head, states = engine.model.vision_model.head, result.vision_model_output.last_hidden_state
    _, weights = head.attention(head.probe, states, states, need_weights=True, average_attn_weights=False)
    return weights[0, :, 0].float().cpu()


def _text(engine: Engine, text: str, most: int | None) -> dict[str, Tensor]:
    """The ids of a text; a SigLIP reads the last place of a text that is filled up to the longest, as in training."""
    inputs = engine.encode(text, most=most)
    length = engine.room("encoder")
    if pools_patches(engine) and length is not None:
        inputs = {"input_ids": engine.tokenizer.filled(inputs["input_ids"], length)}
    return inputs

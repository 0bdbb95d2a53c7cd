"""A picture and a text compared, each read by a tower of its own (CLIP, Radford 2021)."""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from viz_core.hub.engine import Engine
from viz_core.hub.errors import HubError
from viz_core.hub.run import Frame, HubRun
from viz_core.images.opening import as_rgb


def compare(engine: Engine, text: str, image: Image.Image, most: int | None) -> HubRun:
    """One pass through both towers, recorded.

    Raises:
        HubError: if the text is empty or too long, or the picture cannot be prepared.
    """
    pixels = engine.processor.encode(image)
    grid = engine.processor.grid(pixels)
    inputs = {**engine.encode(text, most=most), "pixel_values": pixels.to(engine.device, engine.model.dtype)}
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


def similarities(engine: Engine, result: Any) -> Float[Tensor, "tokens"]:
    """cos(W_v norm(x_i), W_t t) of each token x_i of the picture with the text t, -1 to 1; the class token's first.

    The class token's is what the model was trained on: times exp(logit_scale) it is the model's own logit. A patch is
    read by the same norm and projection, for which it was not trained: where a thing stands its patches may well be the
    least like the word (Li 2023, "CLIP Surgery", section 3).
    """
    model = engine.model
    states = model.vision_model.post_layernorm(result.vision_model_output.last_hidden_state[0])
    return F.cosine_similarity(model.visual_projection(states), result.text_embeds, dim=-1).float().cpu()

"""The logit lens on a translation: each layer's prediction, and the parts of a word's logit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float

from viz_core.models.lens import layer_predictions, logit_parts
from viz_core.pretrained import Translation, Translator


class Lens(NamedTuple):
    """Each layer's prediction at each step: rows are the input and the blocks, columns the words written."""

    tokens: tuple[tuple[str, ...], ...]  # the likeliest one
    probabilities: Float[np.ndarray, "layers steps"]  # of the likeliest one
    written: Float[np.ndarray, "layers steps"]  # of the token that was written in the end
    residual: float  # max |logits of the last row - logits of the model|


class LogitSplit(NamedTuple):
    """The logit of each written token as a sum of parts."""

    names: tuple[tuple[str, int | None, int | None], ...]  # kind, layer and head
    parts: Float[np.ndarray, "parts steps"]
    logits: Float[np.ndarray, "steps"]
    residual: float  # max |sum of parts - logit|


@torch.inference_mode()
def through_the_layers(translator: Translator, translation: Translation) -> Lens:
    """Apply the decoder's output layer to its state after each block."""
    model = translator.model
    source, target, lengths = translator.teacher_forced(translation.source_ids, translation.target_ids)
    state = model.decoder.init_state(model.encoder(source, lengths), lengths)
    logits = layer_predictions(model.decoder, target, state)[:, 0]
    p, best = logits.float().softmax(dim=-1).max(dim=-1)
    wanted = torch.tensor([translation.target_ids], device=target.device).expand(len(logits), -1)
    written = logits.float().softmax(dim=-1).gather(-1, wanted[..., None])[..., 0]
    return Lens(
        tuple(translator.readable_tokens(row) for row in best.tolist()),
        p.cpu().numpy(),
        written.cpu().numpy(),
        float((logits[-1] - model(source, target, lengths)[0]).abs().max()),
    )


@torch.inference_mode()
def split_of_the_logits(translator: Translator, translation: Translation) -> LogitSplit:
    """Split the logit of each written token into what the input, heads, feed-forward nets and biases add."""
    model = translator.model
    source, target, lengths = translator.teacher_forced(translation.source_ids, translation.target_ids)
    wanted = torch.tensor([translation.target_ids], device=target.device)
    state = model.decoder.init_state(model.encoder(source, lengths), lengths)
    parts = logit_parts(model.decoder, target, state, wanted)
    added = torch.stack([part.logits[0] for part in parts])
    logits = model(source, target, lengths)[0].gather(-1, wanted[0, :, None])[:, 0]
    residual = float((added.sum(dim=0) - logits).abs().max())
    return LogitSplit(tuple(part[:3] for part in parts), added.cpu().numpy(), logits.cpu().numpy(), residual)

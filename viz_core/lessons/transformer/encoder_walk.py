"""Every step of the encoder for one sentence."""

from __future__ import annotations

import torch

from viz_core.lessons.transformer.residuals import position_wise_error, walk_error
from viz_core.models.anatomy import Step, encoder_steps
from viz_core.pretrained import Translation, Translator


def encoder_walk(translator: Translator, translation: Translation) -> tuple[tuple[Step, ...], dict[str, float]]:
    """Every step of the encoder for this sentence, and residuals against the encoder's own output.

    "walk": the last step against the encoder's own output; "twin": one vector at several positions.
    """
    encoder = translator.model.encoder
    source = torch.tensor([translation.source_ids], device=translator.device)
    residuals = {"walk": walk_error(encoder, source), "twin": position_wise_error(encoder)}
    return encoder_steps(encoder, source), residuals

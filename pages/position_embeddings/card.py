"""The chapter's picture on the home page."""

from __future__ import annotations

import torch
from PIL import Image

from ui.blocks.over_picture import signed_image
from viz_core.lessons.position_embeddings.shared_layer import SharedLayer
from viz_core.positional.entry import SchemeSizes
from viz_core.positional.register import BY_NAME


def picture() -> Image.Image:
    """What relative positions add to the scores of one repeated word: one value for each offset."""
    line = SharedLayer(torch.ones(24, 32), SchemeSizes(24, 32, 1, 1, 24))
    scores = line.position_scores(BY_NAME["relative"])[0]
    return signed_image(scores.numpy(), float(scores.abs().max()))

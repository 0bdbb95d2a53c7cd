"""The chapter's picture on the home page."""

from __future__ import annotations

import torch
from PIL import Image

from viz_core.figures.raster import signed_image
from viz_core.lessons.position_embeddings.schemes import BY_NAME
from viz_core.lessons.position_embeddings.setting import Setting, Sizes


def picture() -> Image.Image:
    """What relative positions add to the scores of one word, repeated: one value an offset."""
    line = Setting(torch.ones(24, 32), Sizes(24, 32, 1, 1, 24))
    scores = BY_NAME["relative"].position_scores(line)[0]
    return signed_image(scores.numpy(), float(scores.abs().max()))

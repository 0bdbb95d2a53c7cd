"""The chapter's picture on the home page."""

from __future__ import annotations

import torch
from PIL import Image

from ui.blocks.over_picture import tiles, weights_image
from ui.blocks.translation import sample_maps


def picture() -> Image.Image:
    """Every head of the encoder on the first long sample, four rows of six."""
    encoder = sample_maps("transformer-en-fr", "cat")[0]
    heads = torch.cat([call.weights()[0] for call in encoder.calls])
    return weights_image(tiles(heads, columns=6).numpy())

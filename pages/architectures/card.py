"""The chapter's picture on the home page."""

from __future__ import annotations

import torch
from PIL import Image

from ui.blocks.over_picture import tiles, weights_image
from viz_core.lessons.architectures.costs import LayerSizes, path_matrix


def picture() -> Image.Image:
    """How far every token is from every other: recurrence, convolutions, restricted and full self-attention."""
    sizes, narrow = LayerSizes(20, 8, 3, 5), LayerSizes(20, 8, 2, 5)
    kinds = [("recurrent", sizes), ("convolution", sizes), ("restricted", sizes)]
    kinds += [("dilated", narrow), ("dilated", sizes), ("attention", sizes)]
    lengths = torch.stack([path_matrix(name, size) for name, size in kinds])
    lengths = lengths.masked_fill(lengths.isinf(), 0)  # where no way leads
    return weights_image(tiles(lengths / lengths.amax(), columns=3).numpy())

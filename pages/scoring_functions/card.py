"""The chapter's picture on the home page."""

from __future__ import annotations

import torch
from PIL import Image

from ui.blocks.over_picture import weights_image
from viz_core.attention import masked_softmax


def picture() -> Image.Image:
    """Each query may see one key more than the one before it: the rows share their weight among more and more."""
    queries, keys = torch.arange(20.0)[:, None], torch.arange(20.0)
    scores = 2 * torch.cos(0.9 * (queries - keys)) - 0.15 * (queries - keys).abs()
    weights = masked_softmax(scores[None], torch.arange(1, 21)[None])[0]
    return weights_image((weights / weights.amax(dim=-1, keepdim=True)).numpy())

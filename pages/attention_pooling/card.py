"""The chapter's picture on the home page."""

from __future__ import annotations

import torch
from PIL import Image

from ui.blocks.over_picture import weights_image
from viz_core.attention import gaussian, nadaraya_watson
from viz_core.lessons.attention_pooling.curve_fit import SPAN, noisy_points


def picture() -> Image.Image:
    """The weights of 40 queries on 40 points, in order."""
    x, y = noisy_points(40)
    queries = torch.linspace(0, SPAN, 40, dtype=torch.float64)
    _, weights = nadaraya_watson(x, y, queries, gaussian(0.5))
    return weights_image((weights / weights.max()).float().numpy(), root=False)

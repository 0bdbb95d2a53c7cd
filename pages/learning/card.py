"""The chapter's picture on the home page."""

from __future__ import annotations

import torch
from PIL import Image

from pages.learning.runs import RECORDED
from ui.blocks.over_picture import tiles, weights_image
from viz_core.lessons.learning.runs import shot_weights
from viz_core.tasks.film import load_film

SHOTS = 5


def picture() -> Image.Image:
    """Two layers learning to repeat: a row per head of the second layer, a column per snapshot."""
    film = load_film(RECORDED / "repeat-two-layers-0.npz")
    last = len(film.shots) - 1
    shots = [round(last * (place / (SHOTS - 1)) ** 2) for place in range(SHOTS)]
    maps = torch.stack([shot_weights(film, shot)[1] for shot in shots], dim=1)
    return weights_image(tiles(maps.flatten(0, 1), columns=SHOTS).numpy())

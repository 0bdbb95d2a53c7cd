"""The chapter's picture on the home page."""

from __future__ import annotations

from PIL import Image
from torch import Tensor

from ui.pictures import picture_look, picture_model, sample
from viz_core.figures.raster import tiles, weights_image


def picture() -> Image.Image:
    """What the class token looks at on a drawn boot, all heads of three layers."""
    boot = sample("ankle-boot")
    maps: Tensor = picture_look(picture_model("vit-fashion-mnist"), boot, "token-attention", 0)[1:4].flatten(0, 1)
    return weights_image(tiles(maps / maps.amax(dim=(1, 2), keepdim=True), columns=6).numpy(), root=False)

"""The chapter's picture on the home page."""

from __future__ import annotations

from PIL import Image

from serving.models.model_spec import ShippedClassifier
from serving.requests.classification import ClassificationRequest
from serving.requests.token_maps import token_over_patches
from ui.blocks.over_picture import tiles, weights_image
from ui.compute.models import evaluate
from ui.compute.pictures import sample_picture


def picture() -> Image.Image:
    """The class token's attention on a drawn boot, all heads of three layers."""
    boot = ClassificationRequest(ShippedClassifier("vit-fashion-mnist"), sample_picture("ankle-boot"))
    maps = evaluate(boot, token_over_patches, 0)[1:4].flatten(0, 1)
    return weights_image(tiles(maps / maps.amax(dim=(1, 2), keepdim=True), columns=6).numpy(), root=False)

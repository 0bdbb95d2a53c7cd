"""Drawn pictures that ship; without torch, as the first page names them."""

from PIL import Image

from viz_core.runtime.assets import ASSETS, reading

FOLDER = ASSETS / "samples" / "drawn"

GARMENTS = ("t-shirt", "ankle-boot", "trouser", "dress", "pullover", "bag", "sneaker", "sandal")
"""Garments on a shop's white background: one for several labels of Fashion-MNIST."""

SCENES = ("airplane", "ship", "automobile", "truck", "frog", "cat")
"""Small scenes, each with an object that CIFAR-10 has a label for."""


def drawn_picture(name: str) -> Image.Image:
    """Return one of `GARMENTS` or `SCENES`, 256 x 256 pixels. AssetError if its file is missing or damaged."""
    path = FOLDER / f"{name}.png"
    with reading(path), Image.open(path) as image:
        return image.convert("RGB")

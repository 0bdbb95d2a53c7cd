"""The chapter's picture on the home page."""

from __future__ import annotations

from PIL import Image

from ui.blocks.over_picture import signed_image
from viz_core.positional import sinusoidal_table


def picture() -> Image.Image:
    """A table with the proportions of a card, so that none of it is cut off."""
    return signed_image(sinusoidal_table(40, 64).numpy(), 1.0)

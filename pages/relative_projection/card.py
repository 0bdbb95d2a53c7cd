"""The chapter's picture on the home page."""

from __future__ import annotations

from PIL import Image

from ui.blocks.over_picture import signed_image
from viz_core.positional import relative_projection


def picture() -> Image.Image:
    """The matrix that moves positions by five."""
    return signed_image(relative_projection(5, 16).float().numpy(), 1.0)

"""The chapter's picture on the home page."""

from __future__ import annotations

from PIL import Image

from ui.blocks.over_picture import signed_image
from viz_core.lessons.linear_attention.layers import draw_stream


def picture() -> Image.Image:
    """The signed map of the gated delta rule on the chapter's stream."""
    return signed_image(draw_stream(2).operator("delta", 0.9).map()[0, 0].float().numpy(), 1.0)

"""The chapter's picture on the home page."""

from __future__ import annotations

from PIL import Image

from ui.blocks.translation import alignment_picture


def picture() -> Image.Image:
    """The head that aligns French and English, on one of the long samples."""
    return alignment_picture("transformer-en-fr", "cat")

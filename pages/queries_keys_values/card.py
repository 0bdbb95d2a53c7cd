"""The chapter's picture on the home page."""

from __future__ import annotations

from PIL import Image

from ui.blocks.over_picture import weights_image
from viz_core.lessons.queries_keys_values.lookup import BOOK_DATABASE, soft_lookup


def picture() -> Image.Image:
    """The soft-lookup weights of every name of the book's table on all names."""
    keys = [key for key, _ in BOOK_DATABASE]
    return weights_image(soft_lookup(keys, keys, 0.3).float().numpy())

"""The chapter's picture on the home page."""

from __future__ import annotations

import numpy as np
from PIL import Image

from ui.blocks.over_picture import weights_image
from ui.compute.heads import head_scans


def picture() -> Image.Image:
    """Shares of attention of the reader's heads: a row a head, a column a role."""
    table = head_scans("reader-en").tables["narrow", "encoder-self"]
    roles = ("previous", "next", "diagonal", "first", "separator", "punctuation", "same-word")
    return weights_image(np.stack([table.part(role, "mean") for role in roles]).astype(np.float32))

"""A small picture of any picture, to show it."""

from __future__ import annotations

from PIL import Image

from viz_core.images.open_image import as_rgb


def preview(image: Image.Image, side: int = 512) -> Image.Image:
    """Return any picture in RGB, at most `side` pixels on its longer side; never the whole of a large one.

    One that is all but a line is drawn thicker, so that something is left of it wherever it is made smaller again.
    """
    larger = max(image.size) / (4 * side)
    if larger > 1:
        rough = max(1, round(image.width / larger)), max(1, round(image.height / larger))
        image = image.resize(rough, Image.Resampling.NEAREST)
    colour = as_rgb(image)
    colour.thumbnail((side, side))
    thick = max(colour.size) // 64
    return colour if min(colour.size) >= thick else colour.resize([max(length, thick) for length in colour.size])

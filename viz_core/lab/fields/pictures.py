"""Pictures: a place for each patch, and for each word of the text beside it."""

from collections.abc import Sequence

from PIL import Image

from viz_core.lab.places import Drawing, Panel, Place

_SIDE = 320  # px, the longer


def draw_picture(image: Image.Image, grid: tuple[int, int], tokens: Sequence[str], name: str) -> Drawing:
    """Return the picture with its patches as keys, row by row, and tokens as queries.

    Args:
        image: what the patches cover, no more.
        name: of a patch, with "{row}" and "{column}".
    """
    scale = _SIDE / max(image.size)
    width, height = image.width * scale, image.height * scale
    shown = image.convert("RGB").resize((max(1, round(width)), max(1, round(height))), Image.Resampling.BILINEAR)
    rows, columns = grid
    across, down = width / columns, height / rows
    patches = [
        Place(name.format(row=row + 1, column=column + 1), ((0, column * across, row * down, across, down),))
        for row in range(rows)
        for column in range(columns)
    ]
    words = [Place(f"“{token}”", token=i) for i, token in enumerate(tokens)]
    panel = Panel((0, 0, width, height), picture=shown)
    return Drawing((panel,), (*patches, *words), len(patches), tuple(tokens), relative=True)

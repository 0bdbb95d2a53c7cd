"""A picture in tiles as LLaVA-NeXT has it: the best of a few sizes, without the border, each row with an end."""

import math
from dataclasses import dataclass
from typing import Any

from viz_core.hub.runs.patch_grid import Box
from viz_core.hub.transformers_internals.model_code import best_resolution


@dataclass(frozen=True)
class Tiled:
    """The patches of all tiles together, as many as are left without the border."""

    shape: tuple[int, int]  # rows and columns of patches
    box: Box  # of them, in pixels of the picture


def tiled(height: int, width: int, sizes: Any, patch: int) -> Tiled:
    """What of a picture becomes patches (Liu 2024, "LLaVA-NeXT"; `unpad_image` of its code).

    The picture is made as large as fits into the best of the sizes, in the middle of it. Of the border, which is as
    wide on both sides, rows or columns of patches are left out that hold nothing else.

    Args:
        sizes: (height, width) of all tiles together, in pixels.
        patch: height and width of a patch in pixels.
    """
    high, wide = best_resolution((height, width), sizes)
    rows, columns = high // patch, wide // patch
    above = beside = 0
    if width / height > columns / rows:
        above = (rows - int(round(height * (columns / width), 7))) // 2
    else:
        beside = (columns - int(round(width * (rows / height), 7))) // 2
    scale = min(wide / width, high / height)  # of the picture; the border fills what is left
    tall, broad = min(math.ceil(height * scale), high), min(math.ceil(width * scale), wide)
    left, top = (wide - broad) // 2, (high - tall) // 2
    across = [(x * patch - left) * width / broad for x in (beside, columns - beside)]
    down = [(y * patch - top) * height / tall for y in (above, rows - above)]
    return Tiled((rows - 2 * above, columns - 2 * beside), (across[0], down[0], across[1], down[1]))

"""Position on a picture of the patches that a language model reads among its words."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

Box = tuple[float, float, float, float]
"""Left, top, right and bottom in pixels of a picture, from its upper left corner."""


@dataclass(frozen=True, eq=False)
class PatchGrid:
    """Patches of a picture that are tokens of a run, and where they lie on it.

    A picture that is cut into tiles gives one grid over all of them; where the model sees the whole picture once more,
    small, that is a second grid over the same box. Patches that the model merges into one token are one patch here.

    Attributes:
        box: of all patches, in pixels of the picture as it was given. It lies within the picture where the model cuts
            some off, and reaches beyond where the model is shown a border.
        places: which token of the run each patch is.
        frames: of a video, those that the model merged into these patches; () for a picture.
    """

    box: Box
    places: Int[np.ndarray, "rows columns"]
    frames: tuple[int, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.places.shape[0], self.places.shape[1]

    def box_of(self, row: int, column: int) -> Box:
        """A patch in pixels of the picture, row and column from 0."""
        left, top, right, bottom = self.box
        rows, columns = self.shape
        height, width = (bottom - top) / rows, (right - left) / columns
        return (left + column * width, top + row * height, left + (column + 1) * width, top + (row + 1) * height)

    def over(self, weights: Float[np.ndarray, " tokens"]) -> Float[np.ndarray, "rows columns"]:
        """A row of a map, as it lies on the picture."""
        return weights[self.places]


def box_seen(processor: Any, width: int, height: int) -> Box:
    """The part of a picture that remains after a processor resizes it and crops its middle, in its pixels.

    Args:
        processor: with transformers' options `do_pad` (LLaVA: to a square), `do_resize`, `size`, `do_center_crop` and
            `crop_size`.
    """
    left = top = 0.0
    wide, high = width, height
    if getattr(processor, "do_pad", False):
        wide = high = max(width, height)
        left, top = -float((wide - width) // 2), -float((high - height) // 2)
    if not getattr(processor, "do_center_crop", False):
        return (left, top, left + wide, top + high)
    rows, columns = _resized(processor, high, wide)
    cut = processor.crop_size
    first_row, first_column = (rows - cut["height"]) // 2, (columns - cut["width"]) // 2
    row, column = high / rows, wide / columns  # pixels of the picture for one of the resized picture
    return (
        left + first_column * column,
        top + first_row * row,
        left + (first_column + cut["width"]) * column,
        top + (first_row + cut["height"]) * row,
    )


def _resized(processor: Any, height: int, width: int) -> tuple[int, int]:
    """Height and width before the middle is cut out."""
    size = processor.size if getattr(processor, "do_resize", True) else {}
    shortest = size.get("shortest_edge")
    if shortest:
        long = int(shortest * max(height, width) / min(height, width))
        return (shortest, long) if height <= width else (long, shortest)
    return (size.get("height") or height, size.get("width") or width)

"""Tokens and their places on the picture: by row and column, in words, as query parameters."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from ui.chapter.chapter import Chapter
from viz_core.pretrained import Classification
from viz_core.view.state import ViewState

ROUNDING = 1e-5  # what float32 may lose in sums of a few hundred terms


def token_read(view: ViewState) -> int:
    """The token whose attention is shown: the first pinned query, else the class token."""
    return next((pin.index for pin in view.pins if pin.axis == "query"), 0)


def place_of(found: Classification, token: int) -> tuple[int, int] | None:
    """Row and column of a patch, from 0; None for the class token and its like."""
    patch = token - found.num_special
    return divmod(patch, found.grid[1]) if patch >= 0 else None


def name_of(chapter: Chapter, patch: tuple[int, int] | None) -> str:
    if patch is None:
        return chapter.words("class-token")
    return chapter.words("patch", row=patch[0] + 1, column=patch[1] + 1)


def over_grid(found: Classification, row: Float[Tensor, " tokens"]) -> Float[np.ndarray, "rows columns"]:
    """One token's row over the patches; what goes to the class token is left out, and nothing is divided anew."""
    return row[found.num_special :].reshape(found.grid).numpy()


def pin_of(point: Mapping[str, float], num_special: int, grid: tuple[int, int]) -> str:
    """The pin of a patch that was clicked, as it stands in the address: points count rows and columns from 1."""
    return f"q{num_special + (int(point['y']) - 1) * grid[1] + int(point['x']) - 1}"


def enlarged(image: Image.Image) -> Image.Image:
    """A small picture with its pixels as crisp squares."""
    larger = max(1, 280 // max(image.size))
    return image.resize((image.width * larger, image.height * larger), Image.Resampling.NEAREST)

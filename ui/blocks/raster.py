"""Maps as picture files, for places where a live figure would be too much."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from einops import rearrange
from jaxtyping import Float
from PIL import Image
from plotly.colors import get_colorscale, hex_to_rgb, sequential, unlabel_rgb
from torch import Tensor

from ui.widgets.figure_style import SIGNED_SCALE


def weights_image(weights: Float[np.ndarray, "queries keys"], side: int = 480, root: bool = True) -> Image.Image:
    """Weights 0 to 1 in viridis, one crisp square a weight, at most `side` pixels on the longer side.

    Args:
        root: colour by the square root of the weight, so that small weights are told apart.
    """
    value = np.clip(weights, 0, 1) ** (0.5 if root else 1.0)
    return _paint(value, sequential.Viridis, side)


def signed_image(values: Float[np.ndarray, "rows columns"], limit: float, side: int = 480) -> Image.Image:
    """Values from -limit to limit in the red and blue of signed quantities, one crisp square a value."""
    return _paint(
        np.clip(values / limit, -1, 1) / 2 + 0.5, [colour for _, colour in get_colorscale(SIGNED_SCALE)], side
    )


def _paint(fractions: Float[np.ndarray, "rows columns"], colours: Sequence[str], side: int) -> Image.Image:
    """Fractions from 0 to 1 in evenly spaced colours, at most `side` pixels on the longer side."""
    stops = np.array([hex_to_rgb(c) if c.startswith("#") else unlabel_rgb(c) for c in colours], dtype=np.float64)
    place = np.linspace(0, 1, len(stops))
    pixels = np.stack([np.interp(fractions, place, stops[:, c]) for c in range(3)], axis=-1).round().astype(np.uint8)
    cell = max(1, side // max(fractions.shape))
    size = cell * fractions.shape[1], cell * fractions.shape[0]
    return Image.fromarray(pixels).resize(size, Image.Resampling.NEAREST)


def tiles(maps: Float[Tensor, "count n n"], columns: int) -> Float[Tensor, "rows columns"]:
    """Maps laid out in rows of so many, one empty cell between neighbours."""
    apart = torch.nn.functional.pad(maps, (0, 1, 0, 1))
    return rearrange(apart, "(row column) i j -> (row i) (column j)", column=columns)[:-1, :-1]

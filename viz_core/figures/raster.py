"""Weights as a picture file, for places where a live figure would be too much."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from PIL import Image
from plotly.colors import hex_to_rgb, sequential


def weights_image(weights: Float[np.ndarray, "queries keys"], side: int = 480, root: bool = True) -> Image.Image:
    """Weights 0 to 1 in viridis, one crisp square a weight, at most `side` pixels on the longer side.

    Args:
        root: colour by the square root of the weight, so that small weights are told apart.
    """
    stops = np.array([hex_to_rgb(colour) for colour in sequential.Viridis], dtype=np.float64)
    value = np.clip(weights, 0, 1) ** (0.5 if root else 1.0)
    place = np.linspace(0, 1, len(stops))
    pixels = np.stack([np.interp(value, place, stops[:, c]) for c in range(3)], axis=-1).round().astype(np.uint8)
    cell = max(1, side // max(weights.shape))
    return Image.fromarray(pixels).resize((cell * weights.shape[1], cell * weights.shape[0]), Image.Resampling.NEAREST)

"""Drawing of shaded shapes on the unit square, enlarged and averaged for smooth edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

Colour: TypeAlias = tuple[int, int, int]
Points: TypeAlias = Sequence[tuple[float, float]]

SIDE = 256
_LARGER = 3  # drawn so many times larger, then averaged


class Canvas:
    """A square picture whose corners are (0, 0), top left, and (1, 1), bottom right."""

    def __init__(self, top: Colour, bottom: Colour | None = None) -> None:
        """Fill the background with a vertical gradient."""
        ramp = np.linspace(0, 1, SIDE * _LARGER)[:, None, None]
        colours = (1 - ramp) * np.array(top) + ramp * np.array(bottom or top)
        self.image = Image.fromarray(np.repeat(colours, SIDE * _LARGER, axis=1).round().astype(np.uint8))

    def polygon(self, points: Points, colour: Colour, shade: float = 0.0) -> None:
        """A filled shape; `shade` makes it darker from left to right, as light from the left does."""
        mask = self._mask()
        ImageDraw.Draw(mask).polygon([self._at(point) for point in points], fill=255)
        self._fill(mask, colour, shade)

    def ellipse(
        self, centre: tuple[float, float], radii: tuple[float, float], colour: Colour, shade: float = 0.0
    ) -> None:
        """An ellipse about its centre, with half its width and half its height as radii; shaded as a polygon is."""
        mask = self._mask()
        (x, y), (across, down) = centre, radii
        box = [*self._at((x - across, y - down)), *self._at((x + across, y + down))]
        ImageDraw.Draw(mask).ellipse(box, fill=255)
        self._fill(mask, colour, shade)

    def line(self, points: Points, colour: Colour, width: float) -> None:
        """A line from point to point, of a width that is a share of the picture's side."""
        mask = self._mask()
        pixels = round(width * SIDE * _LARGER)
        ImageDraw.Draw(mask).line([self._at(point) for point in points], fill=255, width=pixels, joint="curve")
        self._fill(mask, colour, 0.0)

    def mirrored(self, points: Points) -> list[tuple[float, float]]:
        """A left outline, downwards, closed by its mirror image."""
        return [*points, *((1 - x, y) for x, y in reversed(points))]

    def finish(self, grain: float = 0.0, seed: int = 0) -> Image.Image:
        """The picture in its size, with a little grain as a camera leaves it."""
        image = self.image.resize((SIDE, SIDE), Image.Resampling.BOX)
        if not grain:
            return image
        image = image.filter(ImageFilter.GaussianBlur(0.8))
        noise = np.random.default_rng(seed).normal(0, grain, (SIDE, SIDE, 1))
        return Image.fromarray((np.asarray(image) + noise).clip(0, 255).round().astype(np.uint8))

    def _mask(self) -> Image.Image:
        return Image.new("L", self.image.size, 0)

    def _at(self, point: tuple[float, float]) -> tuple[float, float]:
        return point[0] * SIDE * _LARGER, point[1] * SIDE * _LARGER

    def _fill(self, mask: Image.Image, colour: Colour, shade: float) -> None:
        box = mask.getbbox()
        if box is None:
            return
        left, top, right, bottom = box
        ramp = 1 - shade * np.linspace(0, 1, right - left)[None, :, None]
        paint = (np.array(colour) * ramp).clip(0, 255).astype(np.uint8)
        patch = Image.fromarray(np.repeat(paint, bottom - top, axis=0))
        self.image.paste(patch, (left, top), mask.crop(box))

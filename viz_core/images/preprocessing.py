"""Preprocessing: a picture of any shape is brought to the form of a model's training pictures, step by step."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from PIL import Image
from torch import Tensor

from viz_core.images.open_image import as_rgb

_EDGE = 0.05 * 255 * 3**0.5  # a pixel counts as background within 5% of the largest distance of two colours

_WORKING_SIDE = 1024  # a garment is trimmed at this size, far above the 28 pixels that come of it


@dataclass(frozen=True)
class Prepared:
    """A picture ready for a model."""

    pixels: Float[Tensor, "1 channels height width"]  # normalised, as the model takes them
    seen: Image.Image  # the same pixels as a picture, before they were normalised
    # what was done to the picture, in order, by name: "trimmed", "grey", "negated", "fitted" for garments; "cropped",
    # "resized" for photographs. A picture that has the model's form already needs none
    steps: tuple[str, ...]


class Preparation:
    """How pictures are prepared for one model.

    Args:
        size: height and width the model takes.
        form: "garment" as Fashion-MNIST was made, "photograph" as CIFAR-10.
        mean, std: of the training pixels, on a scale of 0 to 1, one for each channel.

    Raises:
        ValueError: if the form is neither, a deviation is not positive or the numbers of channels differ.
    """

    def __init__(self, size: tuple[int, int], form: str, mean: Sequence[float], std: Sequence[float]) -> None:
        if form not in FORMS:
            raise ValueError(f"form: expected one of {', '.join(FORMS)}, got {form!r}")
        if len(mean) != len(std) or len(mean) not in (1, 3) or min(std) <= 0:
            raise ValueError(f"expected mean and positive std of 1 or 3 channels, got {list(mean)} and {list(std)}")
        self.size, self.form = size, form
        self.mean, self.std = tuple(mean), tuple(std)

    def __call__(self, image: Image.Image) -> Prepared:
        """Bring a picture of any mode and size into the model's form, and normalise it."""
        seen, steps = FORMS[self.form](image, self.size)
        seen = seen.convert("L" if len(self.mean) == 1 else "RGB")
        array = np.array(seen).reshape(*self.size, len(self.mean))
        return Prepared(self.normalise(torch.from_numpy(array).permute(2, 0, 1)[None]), seen, steps)

    def normalise(
        self, pixels: UInt8[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch channels height width"]:
        """(x / 255 - mean) / std for each channel."""
        mean, std = (torch.tensor(v, device=pixels.device)[:, None, None] for v in (self.mean, self.std))
        return (pixels.float() / 255 - mean) / std

    def config(self) -> dict[str, Any]:
        """Return the entry of config.json."""
        return {"form": self.form, "mean": list(self.mean), "std": list(self.std)}


def garment(image: Image.Image, size: tuple[int, int]) -> tuple[Image.Image, tuple[str, ...]]:
    """A garment as Fashion-MNIST shows it: grey, bright on black, its longer side filling the square.

    The data set was made from shop photographs on a light background: edges near the corner colour trimmed,
    the longer side brought to 28 pixels, centred, negated, made grey (Xiao 2017, section 2). The same is done here.
    Whether to negate is judged by the border: a light one is taken for a shop's background, a dark one means that
    the picture is bright on dark already. A garment before a busy background stays in front of it: nothing is cut
    out, and the model never saw such pictures. The authors' sharpening is left out.
    """
    if image.size == size[::-1] and image.mode == "L" and _border(np.asarray(image)[..., None])[0] <= 127:
        return image, ()
    steps = ["grey"]
    colour = as_rgb(image)
    if max(colour.size) > _WORKING_SIDE:  # 40 megapixels of float32 colours would be half a gigabyte
        colour = _resize(colour, _scaled(colour.size, _WORKING_SIDE / max(colour.size)))
    array = np.asarray(colour)
    border = _border(array)
    background = int(Image.new("RGB", (1, 1), tuple(map(int, border))).convert("L").getpixel((0, 0)))  # type: ignore[arg-type]
    foreground = np.linalg.norm(array.astype(np.float32) - border, axis=-1) > _EDGE
    box = Image.fromarray(foreground).getbbox() or (0, 0, *colour.size)
    if box != (0, 0, *colour.size):
        colour = colour.crop(box)
        steps.insert(0, "trimmed")
    grey = colour.convert("L")
    if background > 127:
        grey = Image.eval(grey, lambda value: 255 - value)
        background = 255 - background
        steps.append("negated")
    scale = min(size[1] / grey.width, size[0] / grey.height)
    inner = _scaled(grey.size, scale)
    canvas = Image.new("L", size[::-1], background)
    corner = ((size[1] - inner[0]) // 2, (size[0] - inner[1]) // 2)
    canvas.paste(_resize(grey, inner), corner)
    return canvas, (*steps, "fitted")


def photograph(image: Image.Image, size: tuple[int, int]) -> tuple[Image.Image, tuple[str, ...]]:
    """A photograph as CIFAR-10 shows it: the largest centred part of the right shape, resized."""
    colour = as_rgb(image)
    steps = []
    scale = min(colour.width / size[1], colour.height / size[0])
    inner = _scaled(size[::-1], scale)
    if inner != colour.size:
        left, top = (colour.width - inner[0]) // 2, (colour.height - inner[1]) // 2
        colour = colour.crop((left, top, left + inner[0], top + inner[1]))
        steps.append("cropped")
    if colour.size != size[::-1]:
        colour = _resize(colour, size[::-1])
        steps.append("resized")
    return colour, tuple(steps)


FORMS = {"garment": garment, "photograph": photograph}


def _border(array: UInt8[np.ndarray, "height width channels"]) -> Float[np.ndarray, " channels"]:
    """Median colour of the pixels along the four edges."""
    edges = np.concatenate((array[0], array[-1], array[:, 0], array[:, -1]))
    return np.median(edges.astype(np.float32), axis=0)


def _scaled(size: tuple[int, int], scale: float) -> tuple[int, int]:
    """Width and height times `scale`, to the nearest whole pixel, a half up; at least one."""
    width, height = (max(1, int(side * scale + 0.5)) for side in size)
    return width, height


def _resize(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    """Pillow's bicubic filter, which averages over all pixels that become one."""
    return image if image.size == size else image.resize(size, Image.Resampling.BICUBIC)

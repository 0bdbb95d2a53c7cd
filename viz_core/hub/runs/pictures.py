"""Pictures as input: prepared for a model, cut into patches, and where each patch lies on the picture."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from PIL import Image
from torch import Tensor

from viz_core.hub.runs.token_text import Token
from viz_core.hub.store.checks import HubError
from viz_core.hub.store.files import SAFE, LocalModel
from viz_core.images.open_image import as_rgb

_MAX_NARROW = 200  # sides of a picture whose shorter side is resized to the model's


def load_image_processor(place: LocalModel) -> Any:
    """A model's image processor, working with Pillow."""
    from transformers import AutoImageProcessor

    return AutoImageProcessor.from_pretrained(place.path, backend="pil", **SAFE)


@dataclass(frozen=True)
class PictureInput:
    """A model's image processor, and how it cuts a picture into patches."""

    processor: Any  # of transformers, working with Pillow
    patch_size: tuple[int, int]  # height and width of a patch in pixels
    registers: bool  # whether tokens after the class token are registers (else: a distillation token)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width in pixels of what the model sees."""
        size = getattr(self.processor, "crop_size", None) or self.processor.size
        shortest = size.get("shortest_edge", 0)
        return size.get("height") or shortest, size.get("width") or shortest

    def encode(self, image: Image.Image) -> Float[Tensor, "1 channels height width"]:
        """The picture as the model takes it: resized, cut, normalised."""
        if self.processor.size.get("shortest_edge") and max(image.size) > _MAX_NARROW * min(image.size):
            raise HubError("This picture is too long and narrow for the model. Cut out a part of it.")
        try:
            pixels = self.processor(images=as_rgb(image), return_tensors="pt")["pixel_values"]
        except (ValueError, OSError, TypeError) as error:
            raise HubError("This picture cannot be prepared for the model: {detail}", detail=str(error)) from None
        return pixels

    def grid(self, pixels: Float[Tensor, "1 channels height width"]) -> tuple[int, int]:
        """Rows and columns of patches."""
        return pixels.shape[2] // self.patch_size[0], pixels.shape[3] // self.patch_size[1]

    def picture(self, pixels: Float[Tensor, "1 channels height width"]) -> Image.Image:
        """The picture as the model saw it: normalisation undone, size and crop kept."""
        channels = pixels.shape[1]
        values = pixels[0].float()
        if getattr(self.processor, "do_normalize", False):
            mean, std = (_per_channel(getattr(self.processor, f"image_{n}"), channels) for n in ("mean", "std"))
            values = values * std + mean
        if getattr(self.processor, "do_rescale", True):
            values = values * 255
        array = values.round().clamp(0, 255).to(torch.uint8).permute(1, 2, 0).numpy()
        return Image.fromarray(array if channels > 1 else array[..., 0])

    def tokens(self, num_tokens: int, grid: tuple[int, int]) -> tuple[Token, ...]:
        """Class token, distillation token or registers, then patches row by row, numbered from 1."""
        rows, columns = grid
        num_special = num_tokens - rows * columns
        if not 0 <= num_special <= 64:
            raise HubError(
                "This model joins the {rows} x {columns} patches of a picture into {count} tokens: no grid.",
                rows=rows,
                columns=columns,
                count=num_tokens,
            )
        names = ["[CLS]", "[DIST]"] if num_special == 2 and not self.registers else ["[CLS]"]
        names += [f"[REG {i}]" for i in range(1, num_special - len(names) + 1)]
        special = [Token(-1, name, name, special=True) for name in names[:num_special]]
        patches = [(row + 1, column + 1) for row in range(rows) for column in range(columns)]
        return (*special, *(Token(-1, f"{row}, {column}", f"{row}, {column}") for row, column in patches))


def _per_channel(values: Any, channels: int) -> Float[Tensor, "channels 1 1"]:
    numbers = list(values) if hasattr(values, "__len__") else [values]
    return torch.tensor([float(numbers[i % len(numbers)]) for i in range(channels)])[:, None, None]


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

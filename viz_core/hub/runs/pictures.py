"""Pictures in and patches out."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from viz_core.hub.runs.token_text import Token
from viz_core.hub.store.errors import HubError
from viz_core.images.open_image import as_rgb

_MOST_NARROW = 200  # sides of a picture whose shorter side is resized to the model's


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
        if self.processor.size.get("shortest_edge") and max(image.size) > _MOST_NARROW * min(image.size):
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

"""Pictures as input: prepared for a model, cut into patches, where each lies on the picture, and the maps that are kept
of the vision tower beside a language model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from PIL import Image
from torch import Tensor

from viz_core.hub.runs.token_text import Token
from viz_core.hub.store import HubError
from viz_core.hub.store.files import SAFE, LocalModel
from viz_core.hub.transformers_internals import patch_positions, window_index
from viz_core.images.open_image import as_rgb
from viz_core.trace import Trace
from viz_core.trace.source import Projected, Source

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


CallSelector: TypeAlias = Callable[[Sequence[Source]], Source | None]
"""What is kept of the calls that a layer of a tower has made so far; None while its maps are not whole."""


class PartialRecording(Trace):
    """A trace with all calls of the language model, and of the vision tower those that `tower` selects.

    A picture in 17 tiles of 1,024 patches leaves 100 MB of queries and keys in each layer of a small tower, many times
    what the language model leaves.

    Args:
        tower: what is kept of a layer's calls; None for nothing.
    """

    def __init__(self, differentiable: bool = False, values: bool = False, *, tower: CallSelector | None) -> None:
        super().__init__(differentiable, values)
        self._tower = tower
        self._begun: dict[str, list[Source]] = {}

    def add(self, source: Source, site: str | None) -> None:
        """Add a call, or what is selected of it."""
        selected: Source | None = source
        if site is not None and site.startswith("vision."):
            if self._tower is None:
                return
            calls = [*self._begun.pop(site, ()), source]
            selected = self._tower(calls)
            if selected is None:
                self._begun[site] = calls
        if selected is not None:
            super().add(selected, site)


def one_frame(calls: Sequence[Source], which: int = -1) -> Source:
    """One picture of a batch, as copies: a view would keep the whole batch."""
    source = calls[-1]
    batch = source.shape[0]
    if batch == 1 or not isinstance(source, Projected):
        return source
    named = ((field.name, getattr(source, field.name)) for field in fields(source))
    own: dict[str, Any] = {
        name: value[which:][:1].clone()
        for name, value in named
        if isinstance(value, Tensor) and value.shape[0] == batch
    }
    return replace(source, **own)


MAX_PATCHES = 4096
"""Of larger pictures the tower's maps are not kept: they would take more memory than the language model's."""


@dataclass(frozen=True, eq=False)
class Packed:
    """How a tower packs a picture, or a video, whose frames follow one another, and none sees another."""

    order: Int[Tensor, " patches"]  # where in the tower's sequence the patches of a frame stand, row by row
    windows: Bool[Tensor, "1 1 patches patches"] | None  # which see each other in the layers with windows
    num_frames: int  # after merging in time

    @classmethod
    def of(cls, config: Any, grid: Int[Tensor, "1 3"]) -> "Packed":
        """Squares of `spatial_merge_size` patches follow each other row by row (Wang 2024, section 2.1); a tower with
        windows has the squares of each window together (Bai 2025, section 2.1.1).

        Args:
            config: of the vision tower.
            grid: frames, rows and columns of patches.
        """
        merge, num_frames = config.spatial_merge_size, int(grid[0, 0])
        grid = torch.cat((torch.ones_like(grid[:, :1]), grid[:, 1:]), dim=1)
        places, windows = patch_positions(grid.cpu(), merge), None
        if getattr(config, "window_size", None):
            squares, ends = window_index(grid.cpu(), merge, config.window_size, config.patch_size)
            places = places.unflatten(0, (-1, merge * merge))[squares].flatten(0, 1)
            windows = torch.arange(len(ends) - 1).repeat_interleave(ends.diff())
        order = (places[:, 0] * int(grid[0, 2]) + places[:, 1]).argsort().to(grid.device)
        if windows is None:
            return cls(order, None, num_frames)
        windows = windows.to(grid.device)[order]
        return cls(order, (windows[:, None] == windows)[None, None], num_frames)

    def laid_out(self, calls: Sequence[Source]) -> Source | None:
        """Join a layer's calls, one per window, into one over all patches of the last frame in row order; None if
        windows are missing."""
        parts = [call for call in calls if isinstance(call, Projected)]
        ends = np.cumsum([part.shape[2] for part in parts])
        if not len(ends) or ends[-1] < self.num_frames * len(self.order):
            return None
        parts = parts[int(np.searchsorted(ends, ends[-1] - len(self.order), "right")) :]
        values = [part.values for part in parts if part.values is not None]
        return replace(
            parts[0],
            queries=self._joined([part.queries for part in parts]),
            keys=self._joined([part.keys for part in parts]),
            values=self._joined(values) if values else None,
            mask=self.windows if len(parts) > 1 else None,
        )

    def _joined(self, tensors: list[Tensor]) -> Tensor:
        return torch.cat(tensors, dim=2)[:, :, self.order]


def merged_in_time(
    pixels: Float[Tensor, "patches values"], num_groups: int, step: int
) -> Float[Tensor, "merged_patches values"]:
    """Packed pictures, each repeated `step` times, as groups that hold `step` different ones in each patch."""
    repeated = rearrange(pixels, "(g f n) (c t p) -> g f n c t p", g=num_groups, f=step, t=step, c=3)
    return rearrange(torch.einsum("gtnctp->gnctp", repeated), "g n c t p -> (g n) (c t p)")


def unpacked(
    pixels: Float[Tensor, "patches values"], grid: Int[Tensor, "1 3"], config: Any
) -> Float[Tensor, "frames channels height width"]:
    """The packed picture, repeated as often as a tower for films takes a still one; `grid` as in `Packed.of`."""
    _, rows, columns = grid[0].tolist()
    merge, patch = config.spatial_merge_size, config.patch_size
    return rearrange(
        pixels,
        "(h w a b) (c t p q) -> t c (h a p) (w b q)",
        h=rows // merge,
        w=columns // merge,
        a=merge,
        b=merge,
        t=config.temporal_patch_size,
        p=patch,
        q=patch,
    )

"""Maps of the vision tower beside a language model: which are kept, and a Qwen-VL's packed patches in row order."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor

from viz_core.hub.transformers_internals.private_names import patch_positions, window_index
from viz_core.trace import Trace
from viz_core.trace.source import Projected, Source

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

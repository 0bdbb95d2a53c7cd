"""Deformable attention: a sparse map, of points between the places of feature maps."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor
from torch.overrides import TorchFunctionMode

from viz_core.trace.source import StoredTensors
from viz_core.trace.weights import TokenMask


@dataclass(frozen=True, eq=False)
class SampledPoints(StoredTensors):
    """Points at which each query and head reads feature maps, and their weights (Zhu 2021, "Deformable DETR", eq. 3).

    Keys are the places of all maps, one map after the other, each row by row. A point (u, v) of a map with W columns
    and H rows is read by bilinear interpolation, so with x = W u - 1/2 and y = H v - 1/2 the place in column i and row
    j has the weight A max(0, 1 - |x - i|) max(0, 1 - |y - j|), summed over the points. What lies outside of a map, or
    at padding, reads zeros: rows sum to 1 less its weight.
    """

    points: Float[Tensor, "batch queries heads points 2"]  # across and down a map, from 0 to 1; map by map
    point_weights: Float[Tensor, "batch queries heads points"]  # A; of a query and head they sum to 1
    sizes: tuple[tuple[int, int], ...]  # rows and columns of each map
    counts: tuple[int, ...]  # points in each map, of a query and head
    values: Float[Tensor, "batch heads keys v"] | None = None
    key_tokens: TokenMask | None = None  # False at padding
    signed: ClassVar[bool] = True
    rule: ClassVar[str] = "deformable attention"

    @property
    def tokens(self) -> TokenMask | None:
        """True where a key is no padding; None for all."""
        return self.key_tokens

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Batch, heads, queries, and places of all feature maps."""
        batch, num_queries, heads = self.points.shape[:3]
        return batch, heads, num_queries, sum(height * width for height, width in self.sizes)

    def rows(self, heads: slice, queries: slice) -> Float[Tensor, "batch some_heads rows keys"]:
        """Return the weights of these heads and queries at every place; ValueError if they were changed in place."""
        self.check_unchanged()
        points, weights = (
            each[:, queries, heads].transpose(1, 2).float() for each in (self.points, self.point_weights)
        )
        found = weights.new_zeros(*weights.shape[:3], self.shape[3])
        start = 0
        maps = zip(self.sizes, points.split(self.counts, dim=-2), weights.split(self.counts, dim=-1), strict=True)
        for (height, width), at, own in maps:
            x, y = (at[..., axis] * size - 0.5 for axis, size in enumerate((width, height)))
            for column, row in ((x.floor() + i, y.floor() + j) for i in range(2) for j in range(2)):
                inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
                share = own * (1 - (x - column).abs()) * (1 - (y - row).abs())
                places = start + row.clamp(0, height - 1) * width + column.clamp(0, width - 1)
                found.scatter_add_(-1, places.long(), torch.where(inside, share, 0))
            start += height * width
        return found if self.key_tokens is None else found * self.key_tokens[:, None, None]

    def read_by(self, row: int, query: int) -> Float[Tensor, "heads points 4"]:
        """Return what a query of a text reads: u, v, the weight, and which feature map, from 0.

        Raises:
            ValueError: if a tensor was changed in place after it was recorded.
        """
        self.check_unchanged()
        points, weights = self.points[row, query].float(), self.point_weights[row, query].float()
        level = torch.arange(len(self.counts)).repeat_interleave(torch.tensor(self.counts)).to(weights)
        return torch.cat([points, weights[..., None], level.expand_as(weights)[..., None]], dim=-1).cpu()


class SamplingMode(TorchFunctionMode):
    """Sees where one call of a layer samples feature maps, by `F.grid_sample`, one map after the other."""

    def __init__(self) -> None:
        super().__init__()
        self._maps, self._grids = list[Tensor](), list[Tensor]()
        self.output: Tensor | None = None  # of all heads, (batch * heads, v, queries)

    def __torch_function__(self, func: Any, _types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        """Return the result of the call, and keep what was sampled, and its weighted sum."""
        result = func(*args, **(kwargs or {}))
        if func is F.grid_sample:
            self._maps.append(args[0].detach())
            self._grids.append(args[1].detach())
        elif self._grids and func is Tensor.sum and result.dim() == 3:
            self.output = result.detach()
        return result

    def source(self, weights: Tensor, mask: Bool[Tensor, "batch keys"] | None, with_values: bool) -> SampledPoints:
        """Return what was sampled.

        Args:
            weights: of the points, as the layer returns them: (batch, queries, heads, points or maps, points).
            mask: that the layer was given; True at padding, or elsewhere: what it hides is zeros.
        """
        batch, num_queries, heads = weights.shape[:3]
        grids = torch.cat(self._grids, dim=2).unflatten(0, (batch, heads)).transpose(1, 2)
        values = torch.cat([each.flatten(2) for each in self._maps], dim=-1).mT.unflatten(0, (batch, heads))
        hidden = ~values.any(dim=-1).any(dim=1)
        known = [] if mask is None else [tokens for tokens in (mask, ~mask) if bool(hidden[~tokens].all())]
        return SampledPoints(
            (grids + 1) / 2,
            weights.detach().reshape(batch, num_queries, heads, -1),
            tuple((each.shape[2], each.shape[3]) for each in self._maps),
            tuple(grid.shape[2] for grid in self._grids),
            values if with_values else None,
            known[0] if known else None,
        )

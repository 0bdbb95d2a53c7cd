"""Deformable attention: a sparse map, of points between the places of feature maps."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

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

    points: Float[Tensor, "batch queries heads levels points 2"]  # across and down a map, from 0 to 1
    point_weights: Float[Tensor, "batch queries heads levels points"]  # A; of a query and head they sum to 1
    sizes: tuple[tuple[int, int], ...]  # rows and columns of each map
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
        for level, (height, width) in enumerate(self.sizes):
            x, y = ((points[..., level, :, axis] * size - 0.5) for axis, size in enumerate((width, height)))
            for column, row in ((x.floor() + i, y.floor() + j) for i in range(2) for j in range(2)):
                inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
                share = weights[..., level, :] * (1 - (x - column).abs()) * (1 - (y - row).abs())
                places = start + row.clamp(0, height - 1) * width + column.clamp(0, width - 1)
                found.scatter_add_(-1, places.long(), torch.where(inside, share, 0))
            start += height * width
        return found if self.key_tokens is None else found * self.key_tokens[:, None, None]

"""Distance over a picture between patches and the patches that they attend to."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from viz_core.trace.arguments import check_tensors, is_whole


@dataclass(frozen=True)
class Patches:
    """Where tokens lie on a picture: special tokens first, then the patches of a grid row by row."""

    grid: tuple[int, int]
    num_special: int

    @cached_property
    def distances(self) -> Float[Tensor, "patches patches"]:
        """Distances between the centres of all patches, in patches."""
        return patch_distances(self.grid, (1, 1))


def mean_attention_distance(
    weights: Float[Tensor, "*batch n n"], grid: tuple[int, int], patch_size: tuple[int, int], num_special: int = 1
) -> Float[Tensor, "*batch"]:
    """Mean distance in pixels from a patch to the patches it attends to (Dosovitskiy 2021, figure 7, right).

    D = mean_i ( sum_j w_ij |c_i - c_j| / sum_j w_ij ), over patches i and j with centres c. Weights on special tokens
    are excluded, and patches that attend to no patch.

    Args:
        weights: attention weights, special tokens first.
        grid: rows and columns of patches.
        patch_size: height and width of a patch in pixels.
        num_special: tokens before the patches.

    Raises:
        ValueError: if weights are not a floating-point tensor, or there are not as many tokens as special tokens and
            patches.
    """
    check_tensors(weights=weights)
    check_tokens(tuple(weights.shape[-2:]), grid, num_special)
    between = weights[..., num_special:, num_special:]
    distances = patch_distances(grid, patch_size).to(weights)
    rows, attending = distances_of_rows(between, distances)
    return rows.sum(dim=-1) / attending.sum(dim=-1).clamp_min(1)


def distances_of_rows(
    weights: Float[Tensor, "*batch rows patches"], distances: Float[Tensor, "rows patches"]
) -> tuple[Float[Tensor, "*batch rows"], Bool[Tensor, "*batch rows"]]:
    """sum_j w_ij d_ij / sum_j w_ij of each row, and whether the row has any weight; 0 where it has none."""
    mass = weights.sum(dim=-1)
    attending = mass > 0
    return torch.where(attending, (weights * distances).sum(dim=-1) / mass.where(attending, 1.0), 0.0), attending


def uniform_attention_distance(grid: tuple[int, int], patch_size: tuple[int, int]) -> float:
    """Mean distance in pixels for uniform attention: the mean over i and j of |c_i - c_j|."""
    return float(patch_distances(grid, patch_size).mean())


def patch_distances(grid: tuple[int, int], patch_size: tuple[int, int]) -> Float[Tensor, "patches patches"]:
    """Euclidean distances in pixels between the centres of patches, row by row; ValueError if there is no patch."""
    if len(grid) != 2 or len(patch_size) != 2 or not all(is_whole(side) for side in (*grid, *patch_size)):
        raise ValueError(f"grid, patch_size: expected two whole numbers each, got {grid} and {patch_size}")
    if min(*grid, *patch_size) < 1:
        raise ValueError(f"expected a grid and patches of at least 1 x 1, got {grid} and {patch_size}")
    rows = torch.arange(grid[0], dtype=torch.float64) * patch_size[0]
    columns = torch.arange(grid[1], dtype=torch.float64) * patch_size[1]
    centres = torch.cartesian_prod(rows, columns)
    return torch.cdist(centres, centres, compute_mode="donot_use_mm_for_euclid_dist").float()


def check_tokens(sides: tuple[int, ...], grid: tuple[int, int], num_special: int) -> None:
    """Raise ValueError unless both sides of a map are the special tokens and the patches of the grid."""
    expected = num_special + grid[0] * grid[1]
    if sides != (expected, expected):
        raise ValueError(
            f"weights: expected {num_special} special tokens and {grid[0]} x {grid[1]} patches, a side of {expected}, "
            f"got maps of {' x '.join(map(str, sides))}"
        )

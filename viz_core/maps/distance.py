"""How far a head looks over the picture, in pixels."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.trace.arguments import check_tensors, is_whole


def mean_attention_distance(
    weights: Float[Tensor, "*batch n n"],
    grid: tuple[int, int],
    patch_size: tuple[int, int],
    num_special: int = 1,
) -> Float[Tensor, "*batch"]:
    """Mean distance in pixels from a patch to the patches it attends to (Dosovitskiy 2021, figure 7, right).

    D = mean_i ( sum_j w_ij |c_i - c_j| / sum_j w_ij ), over patches i and j with centres c. What goes to the class
    token and others that have no place is left out and the rest counted as a whole; a patch that attends to no
    patch at all is left out too.

    Args:
        weights: attention weights, special tokens first.
        grid: rows and columns of patches.
        patch_size: height and width of a patch in pixels.
        num_special: tokens before the patches.

    Raises:
        ValueError: if weights are no floating-point tensor, or there are not as many tokens as special tokens and
            patches.
    """
    check_tensors(weights=weights)
    check_tokens(tuple(weights.shape[-2:]), grid, num_special)
    between = weights[..., num_special:, num_special:]
    distances = patch_distances(grid, patch_size).to(weights)
    mass = between.sum(dim=-1)
    looking = mass > 0
    per_patch = torch.where(looking, (between * distances).sum(dim=-1) / mass.where(looking, 1.0), 0.0)
    return per_patch.sum(dim=-1) / looking.sum(dim=-1).clamp_min(1)


def uniform_attention_distance(grid: tuple[int, int], patch_size: tuple[int, int]) -> float:
    """mean over i and j of |c_i - c_j|, in pixels: the distance of a head that attends to all patches alike.

    Raises:
        ValueError: if the grid or the patch is empty.
    """
    return float(patch_distances(grid, patch_size).mean())


def patch_distances(grid: tuple[int, int], patch_size: tuple[int, int]) -> Float[Tensor, "patches patches"]:
    """|c_i - c_j|, the Euclidean distances in pixels between the centres of all patches, row by row.

    Raises:
        ValueError: if the grid or the patch is empty.
    """
    if len(grid) != 2 or len(patch_size) != 2 or not all(is_whole(side) for side in (*grid, *patch_size)):
        raise ValueError(f"grid, patch_size: expected two whole numbers each, got {grid} and {patch_size}")
    if min(*grid, *patch_size) < 1:
        raise ValueError(f"expected a grid and patches of at least 1 x 1, got {grid} and {patch_size}")
    rows = torch.arange(grid[0], dtype=torch.float64) * patch_size[0]
    columns = torch.arange(grid[1], dtype=torch.float64) * patch_size[1]
    centres = torch.cartesian_prod(rows, columns)
    return torch.cdist(centres, centres, compute_mode="donot_use_mm_for_euclid_dist").float()


def check_tokens(sides: tuple[int, ...], grid: tuple[int, int], num_special: int) -> None:
    """Refuse maps whose sides are not the special tokens and the patches of the grid.

    Raises:
        ValueError: naming both.
    """
    expected = num_special + grid[0] * grid[1]
    if sides != (expected, expected):
        raise ValueError(
            f"weights: expected {num_special} special tokens and {grid[0]} x {grid[1]} patches, a side of {expected}, "
            f"got maps of {' x '.join(map(str, sides))}"
        )

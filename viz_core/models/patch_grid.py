"""The grid of a picture's patches, and learned positions interpolated to another grid."""

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float
from torch import Tensor

from viz_core.trace.arguments import check_axes, check_tensors, check_whole


def interpolate_positions(
    pos_embedding: Float[Tensor, "1 tokens d"], learned: tuple[int, int], target: tuple[int, int]
) -> Float[Tensor, "1 new_tokens d"]:
    """Return learned positions for a grid of another size, by bicubic interpolation (Dosovitskiy 2021, section 3.2).

    That of the class token, which is first, is unchanged. ValueError if pos_embedding has not one row for the class
    token and each patch of the learned grid.

    Args:
        learned: rows and columns of the grid that pos_embedding is for.
        target: rows and columns of the new one.
    """
    check_tensors(pos_embedding=pos_embedding)
    check_axes("1 tokens d", pos_embedding=pos_embedding)
    if pos_embedding.shape[1] != learned[0] * learned[1] + 1:
        expected = f"1 + {learned[0]} x {learned[1]}"
        raise ValueError(f"pos_embedding: expected {expected} positions, got {pos_embedding.shape[1]}")
    if target == learned:
        return pos_embedding
    patches = resize_grid(pos_embedding[0, 1:], learned, target)
    return torch.cat((pos_embedding[:, :1], patches[None]), dim=1)


def resize_grid(
    table: Float[Tensor, "patches d"], learned: tuple[int, int], target: tuple[int, int]
) -> Float[Tensor, "new_patches d"]:
    """Return the positions of patches alone, for a grid of another size, as in `interpolate_positions`.

    ValueError if the table has not one row for each patch of the learned grid.
    """
    check_tensors(table=table)
    check_axes("patches d", table=table)
    check_whole(rows=target[0], columns=target[1])
    if len(table) != learned[0] * learned[1]:
        raise ValueError(f"table: expected {learned[0]} x {learned[1]} positions, got {len(table)}")
    if target == learned:
        return table
    grid = rearrange(table, "(rows columns) d -> 1 d rows columns", rows=learned[0])
    resized = F.interpolate(grid.float(), size=target, mode="bicubic", align_corners=False)
    return rearrange(resized, "1 d rows columns -> (rows columns) d").to(table.dtype)


def count_patches(img_size: tuple[int, int], patch_size: tuple[int, int]) -> tuple[int, int]:
    """Return rows and columns of patches in a picture (height, width). ValueError if patches do not divide it."""
    if not all(img_size) or img_size[0] % patch_size[0] or img_size[1] % patch_size[1]:
        raise ValueError(
            f"expected a picture that patches of {patch_size[0]} x {patch_size[1]} pixels divide, "
            f"got {img_size[0]} x {img_size[1]}"
        )
    return img_size[0] // patch_size[0], img_size[1] // patch_size[1]

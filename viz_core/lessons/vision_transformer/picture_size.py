"""The cost of larger pictures for a Vision Transformer with a fixed patch size."""

from dataclasses import dataclass

from viz_core.models.patch_grid import count_patches


@dataclass(frozen=True)
class PictureCost:
    """The cost of one forward pass."""

    tokens: int  # patches and the class token
    multiplications: int  # of all blocks and the patch embedding
    maps: int  # how many of these are for scores and weighted sums, which grow with the square of the tokens


def picture_cost(
    img_size: int,
    patch_size: int = 16,
    num_hiddens: int = 512,
    mlp_num_hiddens: int = 2048,
    num_blks: int = 2,
    num_channels: int = 1,
) -> PictureCost:
    """n (4 d^2 + 2 d m) + 2 n^2 d a block, and p^2 c d for each patch; the book's sizes unless given (section 11.8)."""
    rows, columns = count_patches((img_size, img_size), (patch_size, patch_size))
    n, d = rows * columns + 1, num_hiddens
    maps = num_blks * 2 * n * n * d
    layers = num_blks * n * (4 * d * d + 2 * d * mlp_num_hiddens)
    return PictureCost(n, layers + maps + rows * columns * patch_size**2 * num_channels * d, maps)

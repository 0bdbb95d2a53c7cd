"""The Vision Transformer, parameter for parameter the book's: a picture cut into patches, each a token."""

from typing import TypeAlias, cast

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from viz_core.attention.projection import check_features, check_width
from viz_core.models.transformer import BOOK, BlockOptions
from viz_core.trace import name_sites
from viz_core.trace.arguments import check_axes, check_like, check_number, check_tensors, check_whole, is_whole
from viz_core.trace.weights import Bias, Mask


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


Size: TypeAlias = int | tuple[int, int] | list[int]


class PatchEmbedding(nn.Module):
    """Cut a picture into patches and project each to a vector: row i is W patch_i + b (Dosovitskiy 2021, equation 1).

    A convolution whose stride is its kernel does both at once.

    Args:
        img_size: height and width in pixels, or one number for both.
        patch_size: the same for a patch; it must divide img_size.
        num_hiddens: width of the vectors.
        num_channels: 1 for grey pictures, 3 for colour.

    Raises:
        ValueError: if a size is not a positive whole number, or patches do not divide the picture.
    """

    def __init__(
        self, img_size: Size = 96, patch_size: Size = 16, num_hiddens: int = 512, num_channels: int = 3
    ) -> None:
        super().__init__()
        self.img_size, self.patch_size = _pair("img_size", img_size), _pair("patch_size", patch_size)
        check_whole(num_hiddens=num_hiddens, num_channels=num_channels)
        rows, columns = count_patches(self.img_size, self.patch_size)
        self.num_patches = rows * columns
        self.conv = nn.Conv2d(num_channels, num_hiddens, kernel_size=self.patch_size, stride=self.patch_size)

    def grid(self, X: Float[Tensor, "batch channels height width"]) -> tuple[int, int]:
        """Return rows and columns of patches in these pictures.

        Raises:
            ValueError: if they are not a floating-point tensor of the filters' channels, type and device, or patches do
                not divide them.
        """
        check_like("X", X, self.conv.weight)
        if X.dim() != 4 or X.shape[1] != self.conv.in_channels:
            raise ValueError(
                f"expected pictures of shape (batch, {self.conv.in_channels}, height, width), got {tuple(X.shape)}"
            )
        return count_patches((X.shape[2], X.shape[3]), self.patch_size)

    def forward(self, X: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch patches num_hiddens"]:
        """W patch + b, a vector for each patch, row by row."""
        self.grid(X)
        return rearrange(self.conv(X), "batch d rows columns -> batch (rows columns) d")


class ViTMLP(nn.Module):
    """W_2 gelu(W_1 x + b_1) + b_2, with dropout after each layer, the same for every token.

    (Dosovitskiy 2021, section 3.1.)

    Args:
        mlp_num_hiddens: width inside.
        mlp_num_outputs: width of the output.
        dropout: probability of dropping a number after either layer while training, 0 to 1.
        mlp_num_inputs: width of the input, if it differs.

    Raises:
        ValueError: if a size is not a positive whole number, or dropout is out of range.
    """

    def __init__(
        self, mlp_num_hiddens: int, mlp_num_outputs: int, dropout: float = 0.5, mlp_num_inputs: int | None = None
    ) -> None:
        super().__init__()
        num_inputs = mlp_num_outputs if mlp_num_inputs is None else mlp_num_inputs
        check_whole(mlp_num_hiddens=mlp_num_hiddens, mlp_num_outputs=mlp_num_outputs, mlp_num_inputs=num_inputs)
        check_number(0, 1, dropout=dropout)
        self.dense1 = nn.Linear(num_inputs, mlp_num_hiddens)
        self.dropout1 = nn.Dropout(dropout)
        self.dense2 = nn.Linear(mlp_num_hiddens, mlp_num_outputs)
        self.dropout2 = nn.Dropout(dropout)

    def forward(self, x: Float[Tensor, "*batch d_in"]) -> Float[Tensor, "*batch d_out"]:
        """W_2 gelu(W_1 x + b_1) + b_2 of each token x (Dosovitskiy 2021, section 3.1)."""
        check_features("x", x, self.dense1)
        return self.dropout2(self.dense2(self.dropout1(F.gelu(self.dense1(x)))))


class ViTBlock(nn.Module):
    """Norm, self-attention, add; norm, MLP, add (Dosovitskiy 2021, equations 2 and 3).

    The norm comes before each part; with `norm_first=False` among the options it comes after the addition, as in the
    Transformer of 2017.

    Args:
        norm_shape: width of a token, as `nn.LayerNorm` takes it.
        mlp_num_hiddens: width inside the MLP.
        use_bias: whether the projections of attention have biases.
        options: what differs from the book's block.

    Raises:
        ValueError: as `MultiHeadAttention` and `ViTMLP`.
    """

    def __init__(
        self,
        num_hiddens: int,
        norm_shape: int | list[int],
        mlp_num_hiddens: int,
        num_heads: int,
        dropout: float,
        use_bias: bool = False,
        *,
        options: BlockOptions = BOOK,
    ) -> None:
        super().__init__()
        sides = norm_shape if isinstance(norm_shape, list | tuple) else [norm_shape]
        check_whole(**{f"norm_shape[{place}]": side for place, side in enumerate(sides)})
        self.norm_first = options.norm_first is not False
        self.ln1 = options.norm(norm_shape)
        self.attention = options.self_attention(num_hiddens, num_heads, dropout, use_bias)
        self.ln2 = options.norm(norm_shape)
        own_ffn = options.ffn
        self.mlp = own_ffn(mlp_num_hiddens, num_hiddens) if own_ffn else ViTMLP(mlp_num_hiddens, num_hiddens, dropout)

    def forward(
        self, X: Float[Tensor, "batch n d"], *, mask: Mask | None = None, bias: Bias | None = None
    ) -> Float[Tensor, "batch n d"]:
        """Y = X + attention(LN(X)), then Y + MLP(LN(Y)); norm last: Y = LN(X + attention(X)), then LN(Y + MLP(Y)).

        Args:
            mask, bias: as in `MultiHeadAttention`.
        """
        check_width("X", X, self.attention.W_q)
        if not self.norm_first:
            X = self.ln1(X + self.attention(X, X, X, mask=mask, bias=bias))
            return self.ln2(X + self.mlp(X))
        Z = self.ln1(X)
        X = X + self.attention(Z, Z, Z, mask=mask, bias=bias)
        return X + self.mlp(self.ln2(X))


class ViT(nn.Module):
    """Patches and a class token, plus learned positions, through num_blks blocks; the class token gives the logits.

    (Dosovitskiy 2021, section 3.1 and figure 1.) Token 0 is the class token, token 1 + r C + c the patch in
    row r and column c of a grid with C columns. Positions start at N(0, 0.02^2), as in the paper's code.

    Args:
        img_size: height and width in pixels, or one number for both, for which positions are learned.
        patch_size: the same for a patch.
        num_hiddens: width of a token.
        mlp_num_hiddens: width inside each MLP.
        num_heads: heads of each attention; they divide num_hiddens.
        num_blks: number of blocks; block i is the site "encoder.i.self" of a trace.
        emb_dropout, blk_dropout: dropout of the tokens that enter, and within the blocks.
        use_bias: whether the projections of attention have biases.
        num_classes: number of logits.
        num_channels: 1 for grey pictures, 3 for colour.
        options: what differs from the book's model in every block. `positions` count the tokens in a row, the class
            token first, and are used beside the learned positions at the input.

    Raises:
        ValueError: if a size is not a positive whole number, num_blks not a whole number from 0 on, patches do not
            divide the picture, or as `MultiHeadAttention`.
    """

    def __init__(
        self,
        img_size: Size,
        patch_size: Size,
        num_hiddens: int,
        mlp_num_hiddens: int,
        num_heads: int,
        num_blks: int,
        emb_dropout: float,
        blk_dropout: float,
        use_bias: bool = False,
        num_classes: int = 10,
        num_channels: int = 3,
        *,
        options: BlockOptions = BOOK,
    ) -> None:
        super().__init__()
        check_whole(num_hiddens=num_hiddens, num_classes=num_classes)
        check_whole(0, num_blks=num_blks)
        check_number(0, 1, emb_dropout=emb_dropout)
        self.patch_embedding = PatchEmbedding(img_size, patch_size, num_hiddens, num_channels)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, num_hiddens))
        num_steps = self.patch_embedding.num_patches + 1  # the class token comes first
        self.pos_embedding = nn.Parameter(0.02 * torch.randn(1, num_steps, num_hiddens))
        self.dropout = nn.Dropout(emb_dropout)
        self.blks = nn.Sequential()
        for i in range(num_blks):
            block = ViTBlock(
                num_hiddens, num_hiddens, mlp_num_hiddens, num_heads, blk_dropout, use_bias, options=options
            )
            self.blks.add_module(f"{i}", block)
        self.head = nn.Sequential(nn.LayerNorm(num_hiddens), nn.Linear(num_hiddens, num_classes))
        name_sites(self, "encoder")

    @property
    def blocks(self) -> tuple[ViTBlock, ...]:
        """The blocks, first to last."""
        return cast(tuple[ViTBlock, ...], tuple(self.blks))

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches for which positions were learned."""
        return count_patches(self.patch_embedding.img_size, self.patch_embedding.patch_size)

    def embed(
        self, X: Float[Tensor, "batch channels height width"], positions: bool = True
    ) -> Float[Tensor, "batch tokens num_hiddens"]:
        """[x_class; E patch_1; ...; E patch_n] + E_pos, what the first block sees (Dosovitskiy 2021, equation 1)."""
        grid = self.patch_embedding.grid(X)
        tokens = torch.cat((self.cls_token.expand(X.shape[0], -1, -1), self.patch_embedding(X)), dim=1)
        if not positions:
            return tokens
        return tokens + interpolate_positions(self.pos_embedding, self.grid, grid).to(tokens.dtype)

    def forward(
        self,
        X: Float[Tensor, "batch channels height width"],
        positions: bool = True,
        *,
        mask: Mask | None = None,
        bias: Bias | None = None,
    ) -> Float[Tensor, "batch classes"]:
        """W LN(z_class) + b, the logits of each class (Dosovitskiy 2021, equation 4).

        Args:
            X: normalised pictures, of any size that patches divide; positions are interpolated to it.
            positions: False omits those at the input. The logits then do not depend on the order of the patches.
            mask, bias: as in `MultiHeadAttention`, in every block.

        Raises:
            ValueError: if X is not a floating-point tensor of the model's channels, type and device, patches do not
                divide the pictures, or mask or bias do not fit the tokens.
        """
        return self.head(self.tokens(X, positions, mask=mask, bias=bias)[:, 0])

    def tokens(
        self,
        X: Float[Tensor, "batch channels height width"],
        positions: bool = True,
        *,
        mask: Mask | None = None,
        bias: Bias | None = None,
    ) -> Float[Tensor, "batch tokens num_hiddens"]:
        """Return z_L, the output of the last block, the class token first (Dosovitskiy 2021, equation 3)."""
        H = self.dropout(self.embed(X, positions))
        for blk in self.blks:
            H = blk(H, mask=mask, bias=bias)
        return H


def _pair(name: str, size: Size) -> tuple[int, int]:
    """Height and width."""
    pair = tuple(size) if isinstance(size, tuple | list) else (size, size)
    if len(pair) != 2 or not all(is_whole(side) and side >= 1 for side in pair):
        raise ValueError(f"{name}: expected one number or (height, width), each at least 1, got {size}")
    return pair[0], pair[1]

"""Mimetic initialisation of a vision transformer."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.models.vit import ViT
from viz_core.positional.sinusoidal import sinusoidal_table


@torch.no_grad()
def start_like_trained(model: ViT, diagonal: float = 0.7, apart: float = 0.4) -> None:
    """Mimetic initialisation (Trockman and Kolter 2023, section 4): in every trained ViT W_q^T W_k is nearly a
    multiple of the identity and W_o W_v nearly a negative one, and small data does not suffice to get there.

    For each head W_q^T W_k becomes the best rank-d approximation of diagonal (Z + I), and W_o W_v becomes
    apart (Z - I), with fresh Z_ij ~ N(0, 1 / num_hiddens). Patches get sinusoidal positions in two dimensions,
    from which such heads look around themselves; like all else, positions are learned from there.
    """
    for block in model.blocks:
        attention = block.attention
        width, heads = attention.W_q.weight.shape[0], attention.num_heads
        size = width // heads
        for head in range(heads):
            rows = slice(head * size, (head + 1) * size)
            left, right = _factors(diagonal * (_noise(width) + torch.eye(width)), size)
            attention.W_q.weight[rows], attention.W_k.weight[rows] = left.T, right
        left, right = _factors(apart * (_noise(width) - torch.eye(width)), width)
        attention.W_o.weight.copy_(left)
        attention.W_v.weight.copy_(right)
    model.pos_embedding[0, 1:] = grid_sinusoids(*model.grid, model.pos_embedding.shape[-1])


def grid_sinusoids(rows: int, columns: int, width: int) -> Float[Tensor, "patches width"]:
    """Half of the dimensions tell the row and half the column, at wavelengths that a small grid can tell apart."""
    row, column = (sinusoidal_table(n, width // 2, base=10.0) for n in (rows, columns))
    return torch.cat((row.repeat_interleave(columns, dim=0), column.repeat(rows, 1)), dim=-1)


def _noise(width: int) -> Tensor:
    return torch.randn(width, width) / width**0.5


def _factors(M: Float[Tensor, "n n"], rank: int) -> tuple[Float[Tensor, "n rank"], Float[Tensor, "rank n"]]:
    """L R, the nearest matrix to M of this rank, its singular values shared evenly."""
    U, S, Vh = torch.linalg.svd(M)
    root = S[:rank].sqrt()
    return U[:, :rank] * root, root[:, None] * Vh[:rank]

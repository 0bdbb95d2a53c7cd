"""Sinusoids encode relative positions: a shift by any offset is one rotation of each pair."""

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.positional.sinusoidal import angular_frequencies
from viz_core.trace.arguments import check_number, check_whole


def relative_projection(
    offset: int | float, num_hiddens: int, base: float = 10000.0
) -> Float[Tensor, "num_hiddens num_hiddens"]:
    """The matrix M with M p_i = p_(i + offset) for every position i, where p_i is row i of the sinusoidal table.

    M is block-diagonal, with one block for each pair (sin i omega_j, cos i omega_j):

        [[ cos(offset omega_j), sin(offset omega_j)],
         [-sin(offset omega_j), cos(offset omega_j)]]

    These are the addition theorems of sine and cosine, written as a matrix. M does not depend on
    i, it is orthogonal, and M(a) M(b) = M(a + b). (Vaswani 2017, section 3.5; Dive into Deep
    Learning, section "Relative Positional Information".)

    Args:
        offset: how far to move, in positions; any real number, negative for backwards.
        num_hiddens: width d of the table, an even number.
        base: the base of the angular frequencies.

    Returns:
        float64, for residuals at the rounding error of the table and not of the matrix.

    Raises:
        ValueError: if num_hiddens is < 1 or odd, as sin((i + offset) omega) cannot be made from sin(i omega) alone; if
            offset is not finite; if base <= 0.
    """
    check_whole(num_hiddens=num_hiddens)
    check_number(offset=offset)
    if num_hiddens % 2:
        raise ValueError(
            f"num_hiddens: expected an even number, got {num_hiddens}: "
            "without its cosine the last sine cannot be moved by a matrix"
        )
    phases = offset * angular_frequencies(num_hiddens, base)
    cos, sin = phases.cos(), phases.sin()
    return torch.block_diag(*torch.stack([cos, sin, -sin, cos], dim=1).view(-1, 2, 2))

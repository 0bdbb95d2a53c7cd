"""Sinusoidal positions: a sine and a cosine of the position for each angular frequency."""

import torch
from jaxtyping import Float, Real
from torch import Tensor, nn

from viz_core.positional.entry import SchemeCost, SchemeEntry, check_span
from viz_core.trace.arguments import (
    check_axes,
    check_device,
    check_number,
    check_positive_number,
    check_whole,
    described,
)


def angular_frequencies(num_hiddens: int, base: float = 10000.0) -> Float[Tensor, " pairs"]:
    """omega_j = base^(-2j/d) for each pair of dimensions j = 0 .. ceil(d/2) - 1, float64, radians a position.

    (Vaswani 2017, section 3.5.) The wavelength of pair j is 2 pi / omega_j positions.

    Raises:
        ValueError: if num_hiddens is not a positive whole number, or base is not positive.
    """
    check_whole(num_hiddens=num_hiddens)
    check_positive_number(base=base)
    pairs = torch.arange(0, num_hiddens, 2, dtype=torch.float64)
    return torch.tensor(base, dtype=torch.float64) ** (-pairs / num_hiddens)


def sinusoidal_table(
    num_positions: int, num_hiddens: int, base: float = 10000.0, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "positions num_hiddens"]:
    """P[i, 2j] = sin(i omega_j), P[i, 2j+1] = cos(i omega_j) (Vaswani 2017, section 3.5).

    Phases are computed in float64 and rounded once, so that position 100,000 is as exact as
    position 1. An odd width ends on a sine whose cosine is left out.

    Raises:
        ValueError: if num_positions is not a whole number from 0 on, num_hiddens not a positive one, base is not
            positive, or dtype is not a floating-point type.
    """
    check_whole(0, num_positions=num_positions)
    return sinusoidal_rows(torch.arange(num_positions), num_hiddens, base, dtype)


def sinusoidal_rows(
    positions: Real[Tensor, " positions"], num_hiddens: int, base: float = 10000.0, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "positions num_hiddens"]:
    """p_i = (sin i omega_0, cos i omega_0, sin i omega_1, ...) for any positions i, negative ones and fractions too.

    (Vaswani 2017, section 3.5.)

    Raises:
        ValueError: if positions are not numbers in a row, num_hiddens is not a positive whole number, base is not
            positive, or dtype is not a floating-point type.
    """
    if not isinstance(positions, Tensor) or positions.dtype == torch.bool or positions.is_complex():
        raise ValueError(f"positions: expected a tensor of numbers, got {described(positions)}")
    check_axes("positions", positions=positions)
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise ValueError(f"dtype: expected a floating-point type of torch, got {dtype}")
    phases = positions.double()[:, None] * angular_frequencies(num_hiddens, base)
    rows = torch.stack([phases.sin(), phases.cos()], dim=-1).flatten(1)
    return rows[:, :num_hiddens].to(dtype)


class PositionalEncoding(nn.Module):
    """X + P, then dropout: absolute positions added to embeddings (Vaswani 2017, section 3.5).

    Args:
        num_hiddens: width of the embeddings.
        dropout: probability of dropping a component of the sum while training.
        max_len: number of positions the table holds.

    Raises:
        ValueError: if num_hiddens is not a positive whole number, max_len not a whole number from 0 on, or dropout is
            not from 0 to 1.
    """

    P: Float[Tensor, "1 max_len num_hiddens"]

    def __init__(self, num_hiddens: int, dropout: float = 0.0, max_len: int = 1000) -> None:
        super().__init__()
        check_number(0, 1, dropout=dropout)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("P", sinusoidal_table(max_len, num_hiddens)[None], persistent=False)

    def forward(self, X: Float[Tensor, "batch n num_hiddens"], offset: int = 0) -> Float[Tensor, "batch n num_hiddens"]:
        """X + P[offset : offset + n], then dropout; a decoder with a cache passes its number of steps as offset.

        Raises:
            ValueError: if X is not a floating-point tensor of this width and device, offset is not a whole number from
                0 on, or the last position lies past max_len.
        """
        check_span(X, offset, *self.P.shape[1:])
        check_device(X=X, P=self.P)
        encoded: Tensor = self.dropout(X + self.P[:, offset : offset + X.shape[1]].to(X.dtype))
        return encoded


SINUSOIDAL = SchemeEntry(
    "sinusoidal",
    order=1,
    formula=r"(x_i + p_i)^\top W_q^\top W_k (x_j + p_j)",
    enters="input",
    depends_on="position",
    extrapolates=True,
    # n d stored: a fixed table, added to the input (Vaswani 2017, section 3.5).
    cost=lambda sizes: SchemeCost(stored=sizes.num_tokens * sizes.num_hiddens),
    make_input=lambda num_tokens, num_hiddens: PositionalEncoding(num_hiddens, 0.0, num_tokens),
    task_name="sinusoidal",
)


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

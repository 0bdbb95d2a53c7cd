"""Sinusoidal positions: each pair of dimensions is a clock hand turning at its own speed."""

from __future__ import annotations

import torch
from jaxtyping import Float, Real
from torch import Tensor, nn

from viz_core.positional._checks import check_span


def angular_frequencies(num_hiddens: int, base: float = 10000.0) -> Float[Tensor, "pairs"]:
    """omega_j = base^(-2j/d) for each pair of dimensions j = 0 .. ceil(d/2) - 1, float64, radians a position.

    (Vaswani 2017, section 3.5.) The wavelength of pair j is 2 pi / omega_j positions.

    Raises:
        ValueError: if num_hiddens < 1 or base <= 0.
    """
    if num_hiddens < 1:
        raise ValueError(f"num_hiddens: expected at least 1, got {num_hiddens}")
    if not base > 0:
        raise ValueError(f"base: expected a positive number, got {base}")
    pairs = torch.arange(0, num_hiddens, 2, dtype=torch.float64)
    return torch.tensor(base, dtype=torch.float64) ** (-pairs / num_hiddens)


def sinusoidal_table(
    num_positions: int, num_hiddens: int, base: float = 10000.0, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "positions num_hiddens"]:
    """P[i, 2j] = sin(i omega_j), P[i, 2j+1] = cos(i omega_j) (Vaswani 2017, section 3.5).

    Phases are computed in float64 and rounded once, so that position 100,000 is as exact as
    position 1. An odd width ends on a sine whose cosine is left out.

    Raises:
        ValueError: if num_positions < 0, num_hiddens < 1 or base <= 0.
    """
    if num_positions < 0:
        raise ValueError(f"num_positions: expected at least 0, got {num_positions}")
    return sinusoidal_rows(torch.arange(num_positions), num_hiddens, base, dtype)


def sinusoidal_rows(
    positions: Real[Tensor, "positions"], num_hiddens: int, base: float = 10000.0, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "positions num_hiddens"]:
    """p_i = (sin i omega_0, cos i omega_0, sin i omega_1, ...) for any positions i, negative ones and fractions too.

    Raises:
        ValueError: if num_hiddens < 1 or base <= 0.
    """
    phases = positions.double()[:, None] * angular_frequencies(num_hiddens, base)
    rows = torch.stack([phases.sin(), phases.cos()], dim=-1).flatten(1)
    return rows[:, :num_hiddens].to(dtype)


class PositionalEncoding(nn.Module):
    """X + P, then dropout: absolute positions added to embeddings (Vaswani 2017, section 3.5).

    Args:
        num_hiddens: width of the embeddings.
        dropout: probability of dropping a component of the sum while training.
        max_len: number of positions the table holds.
    """

    P: Float[Tensor, "1 max_len num_hiddens"]

    def __init__(self, num_hiddens: int, dropout: float = 0.0, max_len: int = 1000) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("P", sinusoidal_table(max_len, num_hiddens)[None], persistent=False)

    def forward(self, X: Float[Tensor, "batch n num_hiddens"], offset: int = 0) -> Float[Tensor, "batch n num_hiddens"]:
        """X + P[offset : offset + n], then dropout; a decoder with a cache gives the steps it has taken.

        Raises:
            ValueError: if the width is another one, offset is negative or the last position lies past max_len.
        """
        check_span(X, offset, *self.P.shape[1:])
        encoded: Tensor = self.dropout(X + self.P[:, offset : offset + X.shape[1]].to(X.dtype))
        return encoded

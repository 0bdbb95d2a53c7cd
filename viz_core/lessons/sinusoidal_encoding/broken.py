"""Tables with deliberate errors, one for each claim of the chapter."""

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.positional.sinusoidal import angular_frequencies, sinusoidal_table


def lone_sine(num_positions: int, num_hiddens: int, base: float = 10000.0) -> Float[Tensor, "positions odd"]:
    """A table of odd width, whose last sine has no cosine: num_hiddens, or one more where that is even."""
    return sinusoidal_table(num_positions, num_hiddens + 1 - num_hiddens % 2, base, dtype=torch.float64)


def single_precision(num_positions: int, num_hiddens: int, base: float = 10000.0) -> Float[Tensor, "positions d"]:
    """Phases i omega_j rounded to float32 before their sine is taken, as the book's `PositionalEncoding` does.

    float32 has 24 bits: at position 2,000 an angle is off by up to 6e-5.
    """
    omega = angular_frequencies(num_hiddens, base).float()
    phases = (torch.arange(num_positions, dtype=torch.float32)[:, None] * omega).double()
    return torch.stack([phases.sin(), phases.cos()], dim=2).flatten(1)[:, :num_hiddens]


def without_cosines(num_positions: int, num_hiddens: int, base: float = 10000.0) -> Float[Tensor, "positions d"]:
    """A table in which each cosine is replaced by the sine before it."""
    table = sinusoidal_table(num_positions, num_hiddens, base, dtype=torch.float64)
    return table[:, torch.arange(num_hiddens) // 2 * 2]

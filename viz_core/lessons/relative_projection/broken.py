"""The projection with its sign the other way round: a step back where a step on was asked for."""

from __future__ import annotations

import torch
from jaxtyping import Float, Real
from torch import Tensor

from viz_core.positional.relative_projection import relative_projection
from viz_core.positional.sinusoidal import sinusoidal_rows


def mirrored_residual(
    offset: int,
    num_hiddens: int,
    positions: Real[Tensor, "positions"],
    base: float = 10000.0,
    dtype: torch.dtype = torch.float64,
) -> Float[Tensor, "positions"]:
    """max over dimensions of |M^T p_i - p_(i + offset)|, with [[cos, -sin], [sin, cos]] for M's blocks.

    Raises:
        ValueError: as in `relative_projection`.
    """
    M = relative_projection(offset, num_hiddens, base).to(dtype)
    moved = sinusoidal_rows(positions, num_hiddens, base, dtype) @ M
    arrived = sinusoidal_rows(positions + offset, num_hiddens, base, dtype)
    return (moved.double() - arrived.double()).abs().amax(dim=1)

"""The projection with the wrong sign: it moves positions backwards."""

import torch
from jaxtyping import Float, Real
from torch import Tensor

from viz_core.lessons.relative_projection.proof import arrival_residual
from viz_core.positional.relative_projection import relative_projection


def mirrored_residual(
    offset: int,
    num_hiddens: int,
    positions: Real[Tensor, " positions"],
    base: float = 10000.0,
    dtype: torch.dtype = torch.float64,
) -> Float[Tensor, " positions"]:
    """max over dimensions of |M^T p_i - p_(i + offset)|, with [[cos, -sin], [sin, cos]] for M's blocks."""
    return arrival_residual(relative_projection(offset, num_hiddens, base).T, offset, positions, base, dtype)

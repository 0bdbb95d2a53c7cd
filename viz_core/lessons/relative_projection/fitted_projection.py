"""A least-squares fit of the projection to rows of the table."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from viz_core.positional.relative_projection import relative_projection
from viz_core.positional.sinusoidal import sinusoidal_rows


@dataclass(frozen=True)
class FitErrors:
    """How far a fitted matrix W is from moving positions, and from M. Errors are the largest in an entry."""

    reach: int  # the rows fitted stand at positions below it
    rank: int  # directions that these rows span, of d
    seen: float  # of W p_i, at the positions fitted
    unseen: float  # of W p_i, at as many positions from reach to 2 reach - 1
    difference: float  # of W, to `relative_projection`


def fitted_projection(
    offset: int, num_hiddens: int, positions: Int[Tensor, " positions"], base: float = 10000.0
) -> tuple[Float[Tensor, "num_hiddens num_hiddens"], int]:
    """The matrix W of least squared error in W p_i = p_(i + offset) at these positions, and the rows' rank.

    Only rows of the table go in, in float64. Where they span fewer than d directions many matrices are
    equally good, and this is the smallest of them (`torch.linalg.lstsq` by singular values).
    """
    start = sinusoidal_rows(positions, num_hiddens, base, torch.float64)
    arrived = sinusoidal_rows(positions + offset, num_hiddens, base, torch.float64)
    fit = torch.linalg.lstsq(start, arrived, driver="gelsd")
    return fit.solution.T, int(fit.rank)


def fit_errors(offset: int, num_hiddens: int, reach: int, base: float = 10000.0) -> FitErrors:
    """Fit W to up to max(256, 2d) positions drawn from 0 .. reach - 1, and measure it.

    What was seen is always fitted. Whether W is M depends on `reach`: while it is short beside the longest
    wavelengths, the slow hands have hardly turned and look alike, and the rows span fewer than d directions.
    """
    M = relative_projection(offset, num_hiddens, base)
    positions = sampled_positions(reach, max(256, 2 * num_hiddens))
    W, rank = fitted_projection(offset, num_hiddens, positions, base)

    def error(at: Int[Tensor, "positions"]) -> float:
        start, arrived = (sinusoidal_rows(at + step, num_hiddens, base, torch.float64) for step in (0, offset))
        return float((start @ W.T - arrived).abs().max())

    return FitErrors(reach, rank, error(positions), error(positions + reach), float((W - M).abs().max()))


def sampled_positions(reach: int, count: int) -> Int[Tensor, " positions"]:
    """Up to `count` different positions of 0 .. reach - 1, in order; the same ones at every call.

    Drawn, not evenly spaced: a fixed stride would make hands that differ by whole turns a stride look alike.
    """
    generator = torch.Generator().manual_seed(0)
    return torch.randperm(reach, generator=generator)[:count].sort().values

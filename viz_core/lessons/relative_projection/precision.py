"""What a number type costs a rotation: rounding sines once is harmless, computing angles in a small type is not."""

import torch
from jaxtyping import Float, Int, Real
from torch import Tensor

from viz_core.lessons.relative_projection.proof import projection_residual
from viz_core.positional.sinusoidal import angular_frequencies


def naive_rows(
    positions: Real[Tensor, " positions"], num_hiddens: int, base: float, dtype: torch.dtype
) -> Float[Tensor, "positions num_hiddens"]:
    """Rows of the sinusoidal table as a program gets them that never leaves dtype.

    Positions, frequencies, angles, sines and cosines are each rounded to dtype. float16 has no
    positions from 65,520 on: those rows are NaN.
    """
    phases = positions.to(dtype)[:, None] * angular_frequencies(num_hiddens, base).to(dtype)
    return torch.stack([phases.sin(), phases.cos()], dim=-1).flatten(1)[:, :num_hiddens]


def naive_residual(
    offset: int, num_hiddens: int, positions: Int[Tensor, " positions"], base: float, dtype: torch.dtype
) -> Float[Tensor, " positions"]:
    """`projection_residual` with nothing computed outside dtype: angles too, those of M included.

    The sines and cosines in M are those of position `offset`, so its blocks come from the same rows.
    Returns float64, NaN where a position or its angle is too large for dtype.
    """
    step = naive_rows(torch.tensor([offset]), num_hiddens, base, dtype)[0]
    start = naive_rows(positions, num_hiddens, base, dtype)
    arrived = naive_rows(positions + offset, num_hiddens, base, dtype).double()
    sin_a, cos_a, sin_i, cos_i = step[0::2], step[1::2], start[:, 0::2], start[:, 1::2]
    sines, cosines = cos_a * sin_i + sin_a * cos_i, cos_a * cos_i - sin_a * sin_i
    rotated = torch.stack([sines, cosines], dim=-1).flatten(1).double()
    return (rotated - arrived).abs().amax(dim=1)


def log_windows(limit: int, per_decade: int = 8, samples: int = 16) -> Int[Tensor, "windows samples"]:
    """Positions 1 to limit in windows of equal width on a log axis, `samples` of them spread over each.

    A narrow window repeats its few positions. Its last position names it.
    """
    steps = round(per_decade * torch.tensor(float(limit), dtype=torch.float64).log10().item())
    exponents = torch.linspace(0, 1, max(steps, 1) + 1, dtype=torch.float64)
    ends = (limit**exponents).round().long().unique()
    starts = torch.cat([torch.ones(1, dtype=torch.long), ends[:-1] + 1])
    place = torch.linspace(0, 1, samples, dtype=torch.float64)
    return (starts[:, None] + place * (ends - starts)[:, None]).round().long()


def precision_curves(
    offset: int, num_hiddens: int, dtype: torch.dtype, base: float = 10000.0, limit: int = 100_000
) -> tuple[Int[Tensor, " windows"], Float[Tensor, " windows"], Float[Tensor, " windows"]]:
    """The last position of each window, and the largest residual in it: rounded once, and naive, in dtype.

    "Rounded once" is `projection_residual` (float64 angles), "naive" is `naive_residual`.
    """
    windows = log_windows(limit)
    shape, positions = windows.shape, windows.flatten()
    rounded = projection_residual(offset, num_hiddens, positions, base, dtype).view(shape).amax(dim=1)
    naive = naive_residual(offset, num_hiddens, positions, base, dtype).view(shape).amax(dim=1)
    return windows[:, -1], rounded, naive

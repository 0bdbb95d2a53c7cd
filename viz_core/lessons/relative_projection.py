"""M p_i = p_(i + offset), proven: line by line for one pair, and as residuals that rounding alone explains."""

from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float, Real
from torch import Tensor

from viz_core.positional.sinusoidal import angular_frequencies, relative_projection, sinusoidal_rows

Positions: TypeAlias = Real[Tensor, " positions"]
Residuals: TypeAlias = Float[Tensor, " positions"]

POSITIONS = torch.arange(1000)
"""The positions over which residuals are measured."""


class ProofLine(NamedTuple):
    """One equals sign of the proof: what stands right of it, the numbers in it, and how far the two sides differ."""

    name: str
    result: tuple[float, float]
    numbers: dict[str, float]
    residual: float


def proof_lines(
    offset: int, position: int, pair: int, num_hiddens: int, base: float = 10000.0, dtype: torch.dtype = torch.float64
) -> tuple[ProofLine, ...]:
    """Why M p_i = p_(i + offset), for the dimensions 2j and 2j + 1 of pair j; w is short for omega_j, a for the offset.

        product     (M p_i)_j = [[cos aw, sin aw], [-sin aw, cos aw]] (sin iw, cos iw)
        written     ...       = (cos aw sin iw + sin aw cos iw, -sin aw sin iw + cos aw cos iw)
        addition    ...       = (sin(iw + aw), cos(iw + aw))
        result      ...       = (sin((i + a)w), cos((i + a)w)) = the dimensions 2j, 2j + 1 of p_(i + a)

    (Dive into Deep Learning, section "Relative Positional Information".) A line's residual compares it
    with the line before; the first is compared with the product of the whole matrix and the whole row.
    Angles are float64, every sine and cosine is rounded to dtype, and sums and products are made in dtype.
    """
    M = relative_projection(offset, num_hiddens, base).to(dtype)
    start, arrived = sinusoidal_rows(torch.tensor([position, position + offset]), num_hiddens, base, dtype)
    both = slice(2 * pair, 2 * pair + 2)
    whole = (M @ start)[both]
    product = M[both, both] @ start[both]
    (cos_a, sin_a), (sin_i, cos_i) = M[2 * pair, both], start[both]
    written = torch.stack([cos_a * sin_i + sin_a * cos_i, -sin_a * sin_i + cos_a * cos_i])
    omega = angular_frequencies(num_hiddens, base)[pair]
    sum_of_angles = position * omega + offset * omega
    addition = torch.stack([sum_of_angles.sin(), sum_of_angles.cos()]).to(dtype)

    factors = {"cos_a": cos_a, "sin_a": sin_a, "sin_i": sin_i, "cos_i": cos_i}
    angles = {"start": position * omega, "turn": offset * omega, "end": (position + offset) * omega}
    steps = [
        ("product", whole, product, factors),
        ("written", product, written, factors),
        ("addition", written, addition, angles),
        ("result", addition, arrived[both], angles),
    ]
    return tuple(
        ProofLine(
            name,
            (float(right[0]), float(right[1])),
            {key: float(value) for key, value in numbers.items()},
            float((left.double() - right.double()).abs().max()),
        )
        for name, left, right, numbers in steps
    )


def projection_residual(
    offset: int,
    num_hiddens: int,
    positions: Positions,
    base: float = 10000.0,
    dtype: torch.dtype = torch.float64,
    mirrored: bool = False,
) -> Residuals:
    """The largest entry of |M p_i - p_(i + offset)| for each position i: 0 if there were no rounding.

    Angles are float64; the entries of M and of both rows are rounded once to dtype, and the product is
    made in dtype. Returns float64.

    Args:
        mirrored: whether M^T stands in place of M, with blocks [[cos, -sin], [sin, cos]].
    """
    M = relative_projection(offset, num_hiddens, base).to(dtype)
    rotated = sinusoidal_rows(positions, num_hiddens, base, dtype) @ (M if mirrored else M.T)
    arrived = sinusoidal_rows(positions + offset, num_hiddens, base, dtype)
    return (rotated.double() - arrived.double()).abs().amax(dim=1)


def rotation_spread(
    offset: int, num_hiddens: int, positions: Positions, base: float = 10000.0, dtype: torch.dtype = torch.float64
) -> float:
    """How far the rotations read off single positions lie from M: 0 if M did not depend on the position.

    The pair (s, c) at i and (s', c') at i + offset give the cosine c c' + s s' and the sine s' c - c' s
    of the angle between them, without any formula for M. The largest difference to the entries of M.
    """
    M = relative_projection(offset, num_hiddens, base).to(dtype)
    start = sinusoidal_rows(positions, num_hiddens, base, dtype)
    arrived = sinusoidal_rows(positions + offset, num_hiddens, base, dtype)
    (s, c), (s_, c_) = (start[:, 0::2], start[:, 1::2]), (arrived[:, 0::2], arrived[:, 1::2])
    cosine = (c * c_ + s * s_).double() - M.diagonal()[0::2].double()
    sine = (s_ * c - c_ * s).double() - M.diagonal(1)[0::2].double()
    return float(torch.stack([cosine, sine]).abs().max())


def composition_residual(
    first: int, second: int, num_hiddens: int, base: float = 10000.0, dtype: torch.dtype = torch.float64
) -> float:
    """The largest entry of |M(a) M(b) - M(a + b)|: two steps are one."""
    a, b, both = (relative_projection(step, num_hiddens, base).to(dtype) for step in (first, second, first + second))
    return float((a @ b).double().sub(both.double()).abs().max())


def transpose_residual(
    offset: int, num_hiddens: int, base: float = 10000.0, dtype: torch.dtype = torch.float64
) -> float:
    """The largest entry of |M(-a) - M(a)^T|: the way back is the transpose."""
    back, there = (relative_projection(step, num_hiddens, base).to(dtype) for step in (-offset, offset))
    return float((back - there.T).abs().max())


def rounding_bound(reach: float, dtype: torch.dtype = torch.float64) -> float:
    """What rounding alone may cost an entry of M p_i, so the most a true claim may show: 4 eps + reach eps64.

    A computed sine or cosine is off by at most eps, a product or a sum by eps / 2 more. So a sum of two products of
    them collects at most 3 eps (|cos a sin b| + |sin a cos b| <= 1), and the row it is compared with one more. An angle
    of up to `reach` radians, made in float64, is off by reach eps64 / 2, and a residual compares two.

    Args:
        reach: the largest angle that occurs; as omega_0 = 1, the largest sum of |position| and |offset|.
        dtype: where sines, products and sums are rounded.
    """
    return 4 * torch.finfo(dtype).eps + reach * torch.finfo(torch.float64).eps

"""Properties of a sinusoidal table, measured on the table: norms, wavelengths, similarity, distance.

Columns 2j and 2j+1 are a pair, the sine and the cosine of one angle. An odd width ends on a lone
sine, for which most of these do not hold; where that matters, the functions say what they leave out.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from viz_core.positional.sinusoidal import angular_frequencies, sinusoidal_table

Table = Float[Tensor, "positions num_hiddens"]


def wavelengths(num_hiddens: int, base: float = 10000.0) -> Float[Tensor, " num_hiddens"]:
    """2 pi / omega_j of each column, float64, in positions: after so many, the column repeats."""
    return (2 * math.pi / angular_frequencies(num_hiddens, base)).repeat_interleave(2)[:num_hiddens]


def expected_squared_norms(num_positions: int, num_hiddens: int, base: float = 10000.0) -> Float[Tensor, " positions"]:
    """|p_i|^2 as sin^2 + cos^2 = 1 has it: d/2 for even d; (d-1)/2 + sin^2(i omega) with the lone sine of an odd d."""
    positions = torch.arange(num_positions, dtype=torch.float64)
    whole = torch.full_like(positions, num_hiddens // 2)
    if num_hiddens % 2 == 0:
        return whole
    return whole + (positions * angular_frequencies(num_hiddens, base)[-1]).sin().square()


def norm_error(table: Table, base: float = 10000.0) -> float:
    """max over i of |(p_i . p_i) - its expected value|."""
    n, d = table.shape
    return float((table.square().sum(dim=1) - expected_squared_norms(n, d, base)).abs().max())


def measured_wavelengths(table: Table) -> Float[Tensor, "steps pairs"]:
    """The wavelength of each pair as each step from a row to the next shows it: 2 pi over the angle of the step.

    The angle from (sin a, cos a) to (sin b, cos b) is atan2(sin b cos a - cos b sin a, sin a sin b + cos a cos b),
    in (-pi, pi]: right for frequencies below pi, that is for any base >= 1.
    """
    sines, cosines = paired(table)[:, 0::2], paired(table)[:, 1::2]
    across = sines[1:] * cosines[:-1] - cosines[1:] * sines[:-1]
    along = sines[1:] * sines[:-1] + cosines[1:] * cosines[:-1]
    return 2 * math.pi / torch.atan2(across, along)


def wavelength_error(table: Table, base: float = 10000.0) -> float:
    """max over steps and pairs of |measured wavelength / (2 pi / omega_j) - 1|."""
    measured = measured_wavelengths(table)
    expected = wavelengths(table.shape[1], base)[1::2]
    return float((measured / expected - 1).abs().max())


def similarity_by_offset(table: Table) -> Float[Tensor, " positions"]:
    """p_0 . p_k for every k: sum_j cos(k omega_j), for even widths the similarity of any two rows k apart."""
    return table @ table[0]


def rises(similarity: Float[Tensor, " positions"]) -> int:
    """At how many offsets the similarity is larger than at the offset before."""
    return int((similarity.diff() > 0).sum())


def paired(table: Table) -> Float[Tensor, "positions paired_hiddens"]:
    """The columns that have a partner: all but the lone sine of an odd width."""
    return table[:, : table.shape[1] // 2 * 2]


def offset_error(table: Table, num_starts: int = 64) -> float:
    """max |p_i . p_j - p_0 . p_|i-j|| over `num_starts` evenly spaced i and every j: 0 if the offset alone counts.

    It is not where a lone sine adds sin(i omega) sin(j omega); see `paired`.
    """
    similarity = similarity_by_offset(table)
    starts = start_positions(len(table), num_starts)
    offsets = (torch.arange(len(table)) - starts[:, None]).abs()
    return float((table[starts] @ table.T - similarity[offsets]).abs().max())


def start_positions(num_positions: int, num_starts: int = 64) -> Tensor:
    """Positions from which offsets are checked: all of them, or so many evenly spaced, both ends included."""
    return torch.linspace(0, num_positions - 1, min(num_positions, num_starts), dtype=torch.float64).round().long()


class Nearest(NamedTuple):
    """The two most similar rows of a table: their offset and their distance."""

    offset: int
    distance: float


def nearest_rows(table: Table) -> Nearest:
    """The smallest |p_i - p_j| over i != j.

    Between paired columns distance depends on the offset alone, as similarity does, so row 0 against the others tells
    it for all. What a lone sine adds depends on both rows, and can only take them further apart: offsets are
    looked through from the nearest pairs on, until they alone are further apart than the best so far.
    """
    pairs = paired(table)
    squares = (pairs[1:] - pairs[0]).square().sum(dim=1)
    if pairs.shape == table.shape:
        square, before = squares.min(dim=0)
        return Nearest(int(before) + 1, float(square.sqrt()))
    lone, best = table[:, -1], Nearest(0, math.inf)
    for before in squares.argsort().tolist():
        least = math.sqrt(squares[before])
        if least >= best.distance:
            break
        apart = float((lone[before + 1 :] - lone[: -before - 1]).abs().min())
        best = min(best, Nearest(before + 1, math.hypot(least, apart)), key=lambda found: found.distance)
    return best


def binary_code(num_positions: int) -> UInt8[Tensor, "positions bits"]:
    """Positions 0 .. n-1 in binary, the lowest bit first: bit b repeats every 2^(b+1) positions."""
    bits = torch.arange(max(1, (num_positions - 1).bit_length()))
    return (torch.arange(num_positions)[:, None] >> bits & 1).to(torch.uint8)


def doubling_columns(num_bits: int, num_hiddens: int, base: float = 10000.0) -> tuple[int | None, ...]:
    """For each bit b the sine whose wavelength is nearest to 2 pi 2^b: about half as fast as the one before.

    None where none is within a factor of sqrt(2): so no column stands for two bits.
    """
    octaves = (wavelengths(num_hiddens, base)[::2] / (2 * math.pi)).log2()
    distance = (octaves - torch.arange(num_bits)[:, None]).abs()
    nearest = distance.argmin(dim=1)
    return tuple(2 * int(j) if float(row[j]) < 0.5 else None for row, j in zip(distance, nearest, strict=True))


def largest_step(table: Table, columns: Sequence[int]) -> float:
    """The largest change of one of these columns from a row to the next; 0 where there is no next one."""
    return float(table[:, list(columns)].diff(dim=0).abs().max()) if len(table) > 1 else 0.0


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

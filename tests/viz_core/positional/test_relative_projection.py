"""The matrix that moves every position by the same offset."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from viz_core.positional import angular_frequencies, apply_rotary, sinusoidal_table
from viz_core.positional import sinusoidal as relative_projection

even_widths = st.integers(1, 8).map(lambda pairs: 2 * pairs)
offsets = st.one_of(st.integers(-1000, 1000), st.floats(-1000, 1000))


def close(actual: Tensor, expected: Tensor, atol: float = 1e-11) -> None:
    torch.testing.assert_close(actual, expected, atol=atol, rtol=0)


def row(position: float, d: int) -> Tensor:
    """A row of the table at any real position."""
    phases = [position * 10000 ** (-2 * j / d) for j in range(d // 2)]
    return torch.tensor([f(p) for p in phases for f in (math.sin, math.cos)], dtype=torch.float64)


def test_one_step_of_one_pair_by_hand() -> None:
    M = relative_projection(1, 2)
    assert M.dtype == torch.float64
    close(M, torch.tensor([[0.540302, 0.841471], [-0.841471, 0.540302]], dtype=torch.float64), atol=5e-7)


def test_blocks_on_the_diagonal_and_zeros_elsewhere() -> None:
    M, omega = relative_projection(3, 6, base=50.0), angular_frequencies(6, 50.0)
    for r in range(6):
        for c in range(6):
            phase = 3 * omega[r // 2].item()
            block = [[math.cos(phase), math.sin(phase)], [-math.sin(phase), math.cos(phase)]]
            assert M[r, c].item() == pytest.approx(block[r % 2][c % 2] if r // 2 == c // 2 else 0.0, abs=1e-15)


@pytest.mark.parametrize("offset", [-59, -7, 0, 1, 30, 59])
def test_moves_every_position_of_the_book_table(offset: int) -> None:
    P = sinusoidal_table(60, 32, dtype=torch.float64)
    start, end = max(0, -offset), min(60, 60 - offset)
    close(P[start:end] @ relative_projection(offset, 32).T, P[start + offset : end + offset], atol=1e-13)


@settings(max_examples=40)
@given(offset=offsets, position=st.floats(-1000, 1000), d=even_widths)
def test_moves_positions_between_the_whole_ones_too(offset: float, position: float, d: int) -> None:
    close(relative_projection(offset, d) @ row(position, d), row(position + offset, d), atol=1e-10)


@settings(max_examples=40)
@given(a=offsets, b=offsets, d=even_widths)
def test_steps_compose(a: float, b: float, d: int) -> None:
    close(relative_projection(a, d) @ relative_projection(b, d), relative_projection(a + b, d))


@settings(max_examples=40)
@given(offset=offsets, d=even_widths)
def test_transpose_is_inverse_is_the_way_back(offset: float, d: int) -> None:
    M = relative_projection(offset, d)
    close(M @ M.T, torch.eye(d, dtype=torch.float64))
    close(M.T, relative_projection(-offset, d), atol=1e-15)
    assert torch.linalg.det(M).item() == pytest.approx(1.0, abs=1e-12)


def test_no_step_is_the_identity() -> None:
    assert torch.equal(relative_projection(0, 8), torch.eye(8, dtype=torch.float64))


def test_rotary_turns_the_other_way() -> None:
    x = torch.randn(1, 1, 1, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    close(apply_rotary(x, torch.tensor([-4.5]))[0, 0, 0], relative_projection(4.5, 10) @ x[0, 0, 0], atol=1e-14)


def test_no_matrix_moves_the_lone_sine_of_an_odd_width() -> None:
    P = sinusoidal_table(60, 3, dtype=torch.float64)
    best = torch.linalg.lstsq(P[:-1], P[1:]).solution
    residual = (P[:-1] @ best - P[1:]).abs().amax(dim=0)
    close(residual[:2], torch.zeros(2, dtype=torch.float64))
    assert residual[2] > 1e-3
    with pytest.raises(ValueError, match="num_hiddens: expected an even number, got 3"):
        relative_projection(1, 3)


@pytest.mark.parametrize(
    ("offset", "d", "base", "message"),
    [
        (1, 0, 10000.0, "num_hiddens: expected at least 1, got 0"),
        (math.nan, 4, 10000.0, "offset: expected a finite number, got nan"),
        (math.inf, 4, 10000.0, "offset: expected a finite number, got inf"),
        (1, 4, 0.0, "base: expected a positive number, got 0"),
    ],
)
def test_refuses(offset: float, d: int, base: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        relative_projection(offset, d, base)

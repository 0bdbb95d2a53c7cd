"""What a number type costs."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from viz_core.lessons.relative_projection.precision import log_windows, naive_residual, naive_rows, precision_curves
from viz_core.lessons.relative_projection.proof import projection_residual, rounding_bound
from viz_core.positional import sinusoidal_table

TYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def test_naive_rows_in_float64_are_the_table() -> None:
    rows = naive_rows(torch.arange(60), 8, 10000.0, torch.float64)
    assert torch.equal(rows, sinusoidal_table(60, 8, dtype=torch.float64))


def test_naive_rows_in_float32_are_numpys() -> None:
    """As the book writes them, in numpy's float32."""
    angles = np.arange(2000, dtype=np.float32)[:, None] * (10000.0 ** (-np.arange(0, 8, 2) / 8)).astype(np.float32)
    rows = naive_rows(torch.arange(2000), 8, 10000.0, torch.float32).numpy()
    np.testing.assert_allclose(rows[:, 0::2], np.sin(angles), atol=2e-7)
    np.testing.assert_allclose(rows[:, 1::2], np.cos(angles), atol=2e-7)


def test_bfloat16_has_no_position_257() -> None:
    rows = naive_rows(torch.tensor([256, 257]), 2, 10000.0, torch.bfloat16)
    assert torch.equal(rows[0], rows[1])


def test_naive_residual_by_hand() -> None:
    """bfloat16, one pair, from 256 by 1: the position 257 is 256, so nothing seems to move, while M turns by 1."""
    sin_a, cos_a, sin_i, cos_i = math.sin(1), math.cos(1), math.sin(256), math.cos(256)
    expected = max(abs(cos_a * sin_i + sin_a * cos_i - sin_i), abs(cos_a * cos_i - sin_a * sin_i - cos_i))
    residual = naive_residual(1, 2, torch.tensor([256]), 10000.0, torch.bfloat16)
    assert residual.item() == pytest.approx(expected, abs=0.02)


def test_float16_ends_where_its_numbers_do() -> None:
    residual = naive_residual(1, 2, torch.tensor([65_000, 70_000]), 10000.0, torch.float16)
    assert residual.isnan().tolist() == [False, True]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("offset", [-5, 0, 5, 100])
def test_rounded_once_never_degrades(offset: int, dtype: torch.dtype) -> None:
    positions, rounded, _ = precision_curves(offset, 16, dtype)
    bounds = torch.tensor([rounding_bound(p + abs(offset), dtype) for p in positions.tolist()], dtype=torch.float64)
    assert (rounded <= bounds).all()


def test_naive_degrades_with_position() -> None:
    positions, _, naive = precision_curves(5, 16, torch.float32)
    assert positions[-1] == 100_000
    assert naive[-1] > 1000 * naive[0]


def test_curves_are_the_largest_residuals_of_their_windows() -> None:
    positions, rounded, naive = precision_curves(3, 4, torch.float32, limit=40)
    starts = [1, *(positions[:-1] + 1).tolist()]
    for k, (start, end) in enumerate(zip(starts, positions.tolist(), strict=True)):
        window = torch.arange(start, end + 1)  # short enough that every position is a sample
        assert rounded[k] == projection_residual(3, 4, window, dtype=torch.float32).max()
        assert naive[k] == naive_residual(3, 4, window, 10000.0, torch.float32).max()


def test_windows_cover_the_range_and_do_not_overlap() -> None:
    windows = log_windows(100_000)
    assert windows[0, 0] == 1
    assert windows[-1, -1] == 100_000
    assert torch.equal(windows[1:, 0], windows[:-1, -1] + 1)
    assert log_windows(1).tolist() == [[1] * 16]

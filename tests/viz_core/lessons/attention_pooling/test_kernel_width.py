"""Leaving points out against refits, and the width that this finds."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from viz_core.attention import boxcar, gaussian, nadaraya_watson
from viz_core.attention.kernel_pooling import KERNELS, with_width
from viz_core.lessons.attention_pooling.curve_fit import learn_width, leave_one_out, noisy_points

GRID = torch.logspace(-1.7, 1, 28, dtype=torch.float64)


def by_refits(x: Tensor, y: Tensor, kernel) -> list[float]:
    """Fit again without each point."""
    errors = []
    for i in range(len(x)):
        rest = torch.arange(len(x)) != i
        y_hat, _ = nadaraya_watson(x[rest], y[rest], x[i : i + 1], kernel)
        errors.append(float(y[i] - y_hat))
    return errors


@settings(max_examples=40)
@given(
    n=st.integers(2, 12),
    seed=st.integers(0, 99),
    name=st.sampled_from(sorted(KERNELS)),
    width=st.sampled_from([0.05, 0.5, 3.0]),
)
def test_against_refits(n: int, seed: int, name: str, width: float) -> None:
    x, y = noisy_points(n, 1.0, seed)
    kernel = with_width(KERNELS[name], width)
    refits = torch.tensor(by_refits(x, y, kernel), dtype=torch.float64)
    torch.testing.assert_close(leave_one_out(x, y, kernel), refits, equal_nan=True, rtol=1e-9, atol=1e-9)


def test_three_points_by_hand() -> None:
    x = torch.tensor([0.0, 1.0, 3.0], dtype=torch.float64)
    y = torch.tensor([1.0, 2.0, 6.0], dtype=torch.float64)
    errors = leave_one_out(x, y, boxcar)
    assert errors[:2].tolist() == [-1, 1]
    assert errors[2].isnan()  # no other key within 1
    assert leave_one_out(x, y, with_width(boxcar, 2)).tolist() == [-1, -1.5, 4]


def test_the_learned_width_beats_every_width_tried() -> None:
    x, y = noisy_points(40, 1.0, 3)
    search = learn_width(x, y, gaussian(), GRID)
    fine = torch.logspace(-1.5, 0.5, 400, dtype=torch.float64)
    errors = [float(leave_one_out(x, y, gaussian(float(w))).square().mean()) for w in fine]
    assert search.error <= min(errors) + 1e-6
    assert search.best == pytest.approx(float(fine[errors.index(min(errors))]), rel=0.02)
    again = float(leave_one_out(x, y, gaussian(search.best)).square().mean())
    assert search.error == pytest.approx(again, abs=1e-12)
    assert search.error <= float(search.errors.min())


def test_more_noise_asks_for_a_wider_kernel() -> None:
    best = [learn_width(*noisy_points(100, noise, 1), gaussian(), GRID).best for noise in (0.05, 1.0)]
    assert best[0] < best[1]


def test_widths_that_leave_a_point_alone_are_not_compared() -> None:
    x, y = noisy_points(12, 1.0, 5)
    search = learn_width(x, y, boxcar, GRID)
    gap = max(
        min(float((x[i] - x[j]).abs()) for j in range(len(x)) if j != i) for i in range(len(x))
    )  # the loneliest point's distance to its neighbour
    assert search.errors.isnan().tolist() == [float(width) < gap for width in GRID]
    assert search.best >= gap
    assert math.isfinite(search.error)


@pytest.mark.parametrize("place", [0, -1])
def test_a_minimum_at_the_end_of_the_grid(place: int) -> None:
    x, y = noisy_points(40, 1.0, 3)
    grid = torch.tensor([0.5, 0.8, 1.5] if place == 0 else [0.1, 0.15, 0.2], dtype=torch.float64)
    search = learn_width(x, y, gaussian(), grid)
    assert search.best == pytest.approx(float(grid[place]), rel=1e-3)


def test_refuses(shapes_unchecked: None) -> None:
    far = torch.tensor([0.0, 100.0], dtype=torch.float64)
    with pytest.raises(ValueError, match="every point has a neighbour, got up to 10"):
        learn_width(far, far, boxcar, GRID)
    with pytest.raises(ValueError, match="width: expected a positive number"):
        learn_width(far, far, boxcar, torch.zeros(2, dtype=torch.float64))

"""Kernels at distances worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from viz_core.attention import boxcar, constant, epanechnikov, gaussian, triangular
from viz_core.attention.kernel_pooling import KERNELS, with_width

DISTANCES = torch.tensor([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5], dtype=torch.float64)


@pytest.mark.parametrize(
    ("kernel", "values"),
    [
        (boxcar, [0, 1, 1, 1, 1, 1, 0]),  # 1 at distance 1 too, as in the book's text
        (constant, [1, 1, 1, 1, 1, 1, 1]),
        (triangular, [0, 0, 0.5, 1, 0.5, 0, 0]),
        (epanechnikov, [0, 0, 0.5625, 0.75, 0.5625, 0, 0]),
        (
            gaussian(),
            [math.exp(-2), math.exp(-0.5), math.exp(-0.125), 1, math.exp(-0.125), math.exp(-0.5), math.exp(-1.125)],
        ),
        (gaussian(0.5), [math.exp(-8), math.exp(-2), math.exp(-0.5), 1, math.exp(-0.5), math.exp(-2), math.exp(-4.5)]),
    ],
)
def test_values_by_hand(kernel, values) -> None:
    torch.testing.assert_close(kernel(DISTANCES), torch.tensor(values, dtype=torch.float64))


def test_epanechnikov_is_a_density_and_its_namesake_in_the_book_is_another_kernel() -> None:
    u = torch.linspace(-1, 1, 20001, dtype=torch.float64)
    assert float(torch.trapezoid(epanechnikov(u), u)) == pytest.approx(1, abs=1e-7)
    assert float((epanechnikov(u) - triangular(u)).abs().max()) > 0.2


@given(width=st.floats(0.01, 100), distance=st.floats(-200, 200))
def test_a_width_stretches_every_kernel(width: float, distance: float) -> None:
    u = torch.tensor([distance], dtype=torch.float64)
    for kernel in KERNELS.values():
        stretched = with_width(kernel, width)(u)
        torch.testing.assert_close(stretched, kernel(u / width), rtol=1e-9, atol=1e-300)


def test_widths_of_a_gaussian_multiply() -> None:
    assert with_width(gaussian(2.0), 3.0) == gaussian(6.0)


@pytest.mark.parametrize("width", [0.0, -1.0, math.nan, math.inf])
def test_a_width_must_be_positive(width: float) -> None:
    with pytest.raises(ValueError, match="sigma: expected a positive number, got"):
        gaussian(width)
    with pytest.raises(ValueError, match="width: expected a positive number, got"):
        with_width(boxcar, width)

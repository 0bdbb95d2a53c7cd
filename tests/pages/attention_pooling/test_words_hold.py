"""What the pooling chapter says of its pictures, held against what was drawn and against many draws."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from tests.pages.reading import drawn, finding, number, one_line, stands
from tests.visits import Visits
from viz_core.attention.kernel_pooling import KERNELS
from viz_core.lessons.attention_pooling.curve_fit import learn_width, noisy_points

OpenPage = Callable[..., AppTest]
NAMES = ("Gaussian", "boxcar", "constant", "triangular", "Epanechnikov")


def opened(open_page: OpenPage, kernel: str, width: float, n: int, section: str) -> AppTest:
    params = {"ap-kernel": kernel, "ap-width": f"{width:g}", "ap-n": str(n), "ap-section": section}
    app = open_page("attention-pooling", **params)
    stands(app)
    return app


@pytest.mark.parametrize(
    ("kernel", "width", "n"),
    [
        ("Gaussian", 0.5, 40),
        ("Gaussian", 0.02, 40),
        ("boxcar", 0.2, 40),
        ("triangular", 3, 2),
        ("constant", 1, 7),
        ("boxcar", 0.01, 2),
    ],
)
def test_of_the_fit_and_of_five_kernels(visits: Visits, kernel: str, width: float, n: int) -> None:
    app = opened(visits, kernel, width, n, "Five kernels")
    truth, fit = drawn(app, "fit")[:2]
    errors = np.square(fit["y"] - truth["y"].astype(float))
    if finding(app, "The fit's mean squared error", "There is no fit"):
        error = number(app, "against the true curve is")
        assert error == pytest.approx(float(np.nanmean(errors)), abs=6e-4)
        assert f"{kernel}: {error:.3f}" in one_line(app), "above and below the same fit has the same error"
    else:
        assert np.isnan(errors).all()

    x, y = (values.numpy() for values in noisy_points(n, 1.0, 3))
    assert number(app, "The constant kernel gives") == pytest.approx(y.mean(), abs=6e-4)
    at_query = np.abs(2.5 - x) / width
    own = (np.exp(-0.5 * (at_query**2 - at_query.min() ** 2)), at_query <= 1, at_query >= 0, at_query < 1, at_query < 1)
    reached = int((own[NAMES.index(kernel)] > 0).sum())
    assert f"with a weight above 0 | {reached} of {n}" in one_line(app)
    missed = re.search(r"(\d+) of these are too small for float64", one_line(app))
    assert (int(missed[1]) if missed else 0) == (n - reached if kernel == "Gaussian" else 0)


@pytest.mark.parametrize(("kernel", "n"), [("Gaussian", 40), ("constant", 40), ("boxcar", 2)])
def test_of_four_widths(visits: Visits, kernel: str, n: int) -> None:
    app = opened(visits, kernel, 0.5, n, "Four widths")
    error = number(app, "against the true curve is")
    assert f"width 0.5: {error:.3f}" in one_line(app)


@pytest.mark.parametrize("kernel", ["gaussian", "triangular"])
def test_of_noise_and_points_on_average_over_many_draws(kernel: str) -> None:
    """And only on average: of these pairs of draws, some go the other way."""
    widths = torch.logspace(-1.7, 1, 13, dtype=torch.float64)

    def learned(n: int, noise: float) -> np.ndarray:
        draws = (noisy_points(n, noise, seed) for seed in range(60))
        return np.log([learn_width(x, y, KERNELS[kernel], widths, steps=4).best for x, y in draws])

    noisier, plain, few, many = (learned(*drawn) for drawn in ((40, 2.0), (40, 1.0), (20, 1.0), (200, 1.0)))
    for difference in (noisier - plain, few - many):
        assert difference.mean() > 3 * difference.std() / 60**0.5
        assert (difference < 0).any()

"""What decides the book's exercises of section 11.2, by hand and by other ways."""

from __future__ import annotations

import math

import pytest
import torch

from viz_core.attention.kernel_pooling import gaussian
from viz_core.lessons.attention_pooling.curve_fit import descend_width, errors_by_rate, learn_width, noisy_points
from viz_core.lessons.attention_pooling.in_the_plane import label_densities


def test_densities_of_two_labels_by_hand() -> None:
    """One point each at distance 0 and 2 from the query, width 1: (1, e^-2) / (2 * 2 pi)."""
    points = torch.tensor([[0.0, 0.0], [2.0, 0.0]], dtype=torch.float64)
    found = label_densities(points, torch.tensor([0, 1]), torch.zeros(1, 2, dtype=torch.float64), 1.0)
    assert found[0].tolist() == pytest.approx([1 / (4 * math.pi), math.exp(-2) / (4 * math.pi)])


def test_densities_make_one_over_labels_and_plane() -> None:
    points, labels = torch.randn(9, 2, dtype=torch.float64), torch.arange(9) % 3
    axis = torch.linspace(-8, 8, 161, dtype=torch.float64)
    found = label_densities(points, labels, torch.cartesian_prod(axis, axis), 0.5)
    assert float(found.sum() * 0.1**2) == pytest.approx(1, abs=1e-6)


def test_descent_ends_where_the_search_does() -> None:
    points = noisy_points(40, 1.0, 3)
    widths = torch.logspace(-1.5, 0.5, 40, dtype=torch.float64)
    searched = learn_width(*points, gaussian(), widths)
    found = descend_width(*points, left_out=True)
    assert found.width == pytest.approx(searched.best, rel=1e-3)
    assert found.error == pytest.approx(searched.error, rel=1e-6)


def test_points_that_answer_for_themselves_are_nearly_learned_by_heart() -> None:
    with_own, without_own = (descend_width(*noisy_points(40, 1.0, 3), left_out=left_out) for left_out in (False, True))
    assert with_own.error < 0.1 * without_own.error


def test_the_rate_of_the_chapter_is_its_shrinking_width() -> None:
    rate = errors_by_rate((0.2,), 20, 100, draws=2)[0.2]
    assert rate.width == pytest.approx(100**-0.2)
    assert rate.within == pytest.approx(100 * 2 * rate.width / 5)


def test_without_noise_the_squared_bias_grows_as_the_fourth_power_of_the_width() -> None:
    """Away from the ends: on all of [0, 5] windows with points on one side only would make it the third."""
    first, second = (errors_by_rate((0.0,), n, 20_000, noise=0.0, draws=4)[0.0] for n in (412, 13_169))
    slope = math.log(first.error / second.error) / math.log(first.width / second.width)
    assert slope == pytest.approx(4, abs=0.2)

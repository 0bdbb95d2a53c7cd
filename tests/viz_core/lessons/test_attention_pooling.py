"""Curves fitted by kernels against closed forms, and a width that is searched."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from viz_core.attention.kernel_pooling import KERNELS, boxcar, gaussian, nadaraya_watson, with_width
from viz_core.lessons.attention_pooling import (
    Fit,
    book_curve,
    even_queries,
    gaussian_pooling_as_attention,
    labelled_points,
    learn_width,
    leave_one_out,
    left_out_right,
    mean_squared_distance,
    noisy_points,
    range_excess,
    search_width,
    shares,
    sum_error,
    transformed_error,
    true_best_width,
)


def make_fit(kernel: str, width: float) -> Fit:
    x, y = noisy_points(20)
    queries = even_queries(51)
    y_hat, weights = nadaraya_watson(x, y, queries, with_width(KERNELS[kernel], width))
    return Fit("", x, y, queries, book_curve(queries), y_hat, weights)


def test_gaussian_pooling_is_attention_of_its_own_width_alone() -> None:
    fit = make_fit("gaussian", 0.5)
    own, wider = (gaussian_pooling_as_attention(fit.x_train, fit.y_train, fit.x_val, width) for width in (0.5, 0.6))
    assert float((own - fit.y_hat).abs().max()) < 1e-10
    assert float((wider - fit.y_hat).abs().max()) > 0.01
    assert sum_error(fit) < 1e-12
    assert math.isnan(sum_error(make_fit("boxcar", 0.05), unguarded=True))
    assert range_excess(torch.tensor([0.5, 3.25]), torch.tensor([1.0, 3.0])) == 0.5


def test_the_width_closest_to_the_truth_is_found() -> None:
    search, true_errors = search_width("gaussian", 30, 0.5, 1)
    best = true_best_width(search, true_errors)
    x, y = noisy_points(30, 0.5, 1)
    fit, _ = nadaraya_watson(x, y, even_queries(251), with_width(KERNELS["gaussian"], best))
    assert mean_squared_distance(fit, even_queries(251)) == pytest.approx(float(true_errors.nan_to_num(9).min()))


def test_shares_of_two_points_by_hand() -> None:
    points, labels = torch.tensor([[0.0, 0.0], [2.0, 0.0]], dtype=torch.float64), torch.tensor([0, 1])
    queries = torch.tensor([[0.0, 0.0], [1.0, 5.0]], dtype=torch.float64)
    share = 1 / (1 + math.exp(-0.5 * 4))
    found = shares(points, labels, queries, (1.0, 3.0))
    assert found.flatten().tolist() == pytest.approx([share, 1 - share, 0.5, 0.5])
    assert float(shares(points, labels, queries, (2.0, 3.0))[0, 0]) == pytest.approx(1 / (1 + math.exp(-0.5)))


def test_what_moves_change() -> None:
    points, _ = labelled_points()
    assert transformed_error(points, (0.5, 0.5), 30, (3, -1)) < 1e-9
    assert transformed_error(points, (0.5, 0.2), 0, (3, -1)) < 1e-9
    assert transformed_error(points, (0.5, 0.2), 30, (0, 0)) > 0.1


def test_points_left_out() -> None:
    points, labels = labelled_points(4)
    assert labels.bincount().tolist() == [4, 4, 4]
    assert left_out_right(points, labels, (0.5, 0.5)) >= 0.75
    far = torch.tensor([[0.0, 0.0], [9.0, 0.0], [9.1, 0.0]], dtype=torch.float64)
    assert left_out_right(far, torch.tensor([0, 1, 1]), (1, 1)) == pytest.approx(2 / 3)


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


def test_widths_that_leave_a_point_alone_are_not_compared() -> None:
    x, y = noisy_points(12, 1.0, 5)
    search = learn_width(x, y, boxcar, GRID)
    gap = max(
        min(float((x[i] - x[j]).abs()) for j in range(len(x)) if j != i) for i in range(len(x))
    )  # the loneliest point's distance to its neighbour
    assert search.errors.isnan().tolist() == [float(width) < gap for width in GRID]
    assert search.best >= gap
    assert math.isfinite(search.error)


def test_refuses(shapes_unchecked: None) -> None:
    far = torch.tensor([0.0, 100.0], dtype=torch.float64)
    with pytest.raises(ValueError, match="every point has a neighbour, got up to 10"):
        learn_width(far, far, boxcar, GRID)
    with pytest.raises(ValueError, match="width: expected a positive number"):
        learn_width(far, far, boxcar, torch.zeros(2, dtype=torch.float64))

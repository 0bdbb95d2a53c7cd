"""What the chapter measures of a fit, by hand."""

from __future__ import annotations

import math

import pytest
import torch

from viz_core.attention.kernel_pooling import KERNELS, nadaraya_watson, with_width
from viz_core.lessons.attention_pooling.curve_fit import (
    Fit,
    book_curve,
    even_queries,
    gaussian_pooling_as_attention,
    kernel_curves,
    mean_squared_distance,
    noisy_points,
    range_excess,
    search_width,
    sum_error,
    true_best_width,
)


def make_fit(kernel: str, width: float) -> Fit:
    x, y = noisy_points(20)
    queries = even_queries(51)
    y_hat, weights = nadaraya_watson(x, y, queries, with_width(KERNELS[kernel], width))
    return Fit("", x, y, queries, book_curve(queries), y_hat, weights)


def test_weights_of_queries_that_reach_a_key_sum_to_one() -> None:
    fit = make_fit("boxcar", 0.05)
    assert fit.y_hat.isnan().any()
    assert sum_error(fit) < 1e-12
    assert math.isnan(sum_error(fit, unguarded=True))


def test_answers_past_the_values_are_measured() -> None:
    y = torch.tensor([1.0, 3.0])
    assert range_excess(torch.tensor([1.0, 2.0, 3.0]), y) == 0
    assert range_excess(torch.tensor([0.5, 3.25]), y) == 0.5
    assert range_excess(torch.tensor([]), y) == 0


def test_gaussian_pooling_is_attention_of_its_own_width_alone() -> None:
    fit = make_fit("gaussian", 0.5)
    own, wider = (gaussian_pooling_as_attention(fit.x_train, fit.y_train, fit.x_val, width) for width in (0.5, 0.6))
    assert float((own - fit.y_hat).abs().max()) < 1e-10
    assert float((wider - fit.y_hat).abs().max()) > 0.01


def test_without_its_curves_a_fit_keeps_its_points() -> None:
    fit = make_fit("gaussian", 0.5)
    bare = fit.without_curves()
    assert bare.y_hat.isnan().all()
    assert bare.truth.isnan().all()
    assert torch.equal(bare.x_train, fit.x_train)
    assert torch.equal(bare.y_train, fit.y_train)


def test_kernels_at_half_their_width() -> None:
    distances, curves = kernel_curves(2.0, 3.0)
    assert (float(distances[0]), float(distances[-1])) == (-3, 3)
    assert set(curves) == set(KERNELS)
    at_one = int((distances - 1).abs().argmin())
    assert float(curves["triangular"][at_one]) == pytest.approx(0.5)


def test_the_width_closest_to_the_truth_is_found() -> None:
    search, true_errors = search_width("gaussian", 30, 0.5, 1)
    best = true_best_width(search, true_errors)
    x, y = noisy_points(30, 0.5, 1)
    fit, _ = nadaraya_watson(x, y, even_queries(251), with_width(KERNELS["gaussian"], best))
    assert mean_squared_distance(fit, even_queries(251)) == pytest.approx(float(true_errors.nan_to_num(9).min()))

"""Labels pooled in the plane by hand, what moves change, more data, and pooling done wrong."""

from __future__ import annotations

import math

import pytest
import torch

from viz_core.attention import boxcar, gaussian, nadaraya_watson
from viz_core.attention.kernel_pooling import with_width
from viz_core.lessons.attention_pooling.broken import product_weights, signed_weights, unguarded_weights
from viz_core.lessons.attention_pooling.curve_fit import (
    errors_by_rate,
    gaussian_pooling_as_attention,
    leave_one_out,
    noisy_points,
    shrinking_width,
)
from viz_core.lessons.attention_pooling.in_the_plane import labelled_points, left_out_right, shares, transformed_error


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


def test_more_data_and_a_shrinking_width() -> None:
    rates = errors_by_rate((0.2, 0.0), 32, 2000, draws=3)
    assert rates[0.2].error < rates[0.0].error
    assert rates[0.0].width == shrinking_width(32) == pytest.approx(0.5)


def test_pooling_done_wrong_is_wrong() -> None:
    x, y = noisy_points(40, 1.0, 3)
    queries = torch.linspace(0, 5, 51, dtype=torch.float64)
    assert unguarded_weights(x, queries, 0.02).isnan().any()
    right = nadaraya_watson(x, y, queries, with_width(boxcar, 9.0))[1]
    torch.testing.assert_close(unguarded_weights(x, queries, 9.0), right)
    assert float((signed_weights(x, queries, 0.5) @ y).abs().max()) > float(y.abs().max())
    kernel = gaussian(0.2)
    residuals = y - nadaraya_watson(x, y, x, kernel)[0]
    own = nadaraya_watson(x, y, x, kernel)[1].diagonal()
    torch.testing.assert_close((1 - own) * leave_one_out(x, y, kernel), residuals)
    biased = gaussian_pooling_as_attention(x, y, queries, 0.5, key_term=False)
    torch.testing.assert_close(biased, product_weights(x, queries, 0.5) @ y)
    assert float((biased - nadaraya_watson(x, y, queries, gaussian(0.5))[0]).abs().max()) > 0.1

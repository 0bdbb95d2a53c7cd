"""How sure and how often correct, by hand and against a plain loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pages.vision_transformer.prediction import bin_of
from recipes.reliability import calibration_bins, expected_calibration_error, fit_familiarity


def test_bins_by_hand() -> None:
    confidence = torch.tensor([0.95, 0.91, 1.0, 0.55, 0.5])
    correct = torch.tensor([True, False, True, True, False])
    half, sure = calibration_bins(confidence, correct)
    assert (half["start"], half["stop"], half["pictures"]) == (0.5, 0.6, 2)
    assert half["confidence"] == pytest.approx(0.525)
    assert half["accuracy"] == 0.5
    assert (sure["start"], sure["stop"], sure["pictures"]) == (0.9, 1.0, 3)  # 1 is in the last bin, not past it
    assert (sure["confidence"], sure["accuracy"]) == pytest.approx((2.86 / 3, 2 / 3))
    # 2/5 * 0.025 + 3/5 * |2/3 - 2.86/3|
    assert expected_calibration_error([half, sure]) == pytest.approx(0.4 * 0.025 + 0.6 * 0.86 / 3)
    assert bin_of([half, sure], 0.5) == bin_of([half, sure], 0.59) == half
    assert bin_of([half, sure], 1.0) == bin_of([half, sure], 0.9) == sure
    assert bin_of([half, sure], 0.7) is None


@given(st.lists(st.tuples(st.floats(0, 1, width=32), st.booleans()), min_size=1, max_size=30), st.integers(1, 20))
def test_every_picture_is_in_one_bin_that_it_fits(pictures: list[tuple[float, bool]], num_bins: int) -> None:
    confidence, correct = torch.tensor([p for p, _ in pictures]), torch.tensor([r for _, r in pictures])
    bins = calibration_bins(confidence, correct, num_bins)
    assert sum(each["pictures"] for each in bins) == len(pictures)
    assert all(each["start"] - 1e-6 <= each["confidence"] <= each["stop"] + 1e-6 for each in bins)
    assert sum(each["pictures"] * each["accuracy"] for each in bins) == pytest.approx(int(correct.sum()))
    assert 0 <= expected_calibration_error(bins) <= 1


def test_what_is_no_probability_is_refused() -> None:
    for confidence in ([], [1.5], [-0.1]):
        with pytest.raises(ValueError, match="probabilities from 0 to 1"):
            calibration_bins(torch.tensor(confidence), torch.ones(len(confidence), dtype=torch.bool))
    with pytest.raises(ValueError, match="at least 1 bin, got 0"):
        calibration_bins(torch.tensor([0.5]), torch.tensor([True]), 0)
    with pytest.raises(ValueError, match="at least one, got none"):
        expected_calibration_error([])


def test_distances_are_mahalanobis_and_do_not_depend_on_the_axes() -> None:
    features = torch.randn(200, 5) @ torch.randn(5, 5) + 3
    known = fit_familiarity(features, ridge=0)
    x = features.double().numpy()
    inverse = np.linalg.inv(np.cov(x.T, bias=True))
    away = x - x.mean(axis=0)
    expected = np.sqrt(np.einsum("ni,ij,nj->n", away, inverse, away))
    np.testing.assert_allclose(known.distances(features), expected, rtol=1e-3)
    turned = torch.randn(5, 5) + 2 * torch.eye(5)
    again = fit_familiarity(features @ turned, ridge=0).distances(features @ turned)
    torch.testing.assert_close(again, known.distances(features), rtol=1e-2, atol=1e-2)


def test_few_pictures_or_none_alike() -> None:
    with pytest.raises(ValueError, match="at least 2 pictures, got 1"):
        fit_familiarity(torch.ones(1, 3))
    same = fit_familiarity(torch.ones(4, 3))
    assert same.distances(torch.ones(1, 3)).item() == 0
    assert same.distances(torch.zeros(1, 3)).item() > 1e6  # nothing else was ever seen

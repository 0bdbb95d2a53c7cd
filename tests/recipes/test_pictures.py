"""What a classifier is trained on and judged by: views of pictures, accuracy, calibration and distances, by hand."""

import numpy as np
import pytest
import torch

from pages.vision_transformer.prediction import bin_of
from recipes.classification import ClassifierConfig, Views, accuracy, random_views, soft_targets
from recipes.classifiers import measure
from recipes.picture_sets import Pictures
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


def test_by_hand() -> None:
    log_p = torch.tensor([[0.7, 0.3], [0.2, 0.8], [0.6, 0.4], [0.9, 0.1]]).log()
    assert accuracy(log_p, torch.tensor([0, 1, 1, 0])) == 75
    assert [ClassifierConfig(sides=((0.0, 6), (0.5, 8))).side(p) for p in (0.0, 0.49, 0.5, 1.0)] == [6, 6, 8, 8]
    pixels = torch.tensor([0, 255, 255, 0], dtype=torch.uint8).reshape(1, 1, 2, 2)
    found = measure(Pictures(pixels, torch.tensor([0])), "garment")
    assert (found.mean, found.std, found.size) == ((0.5,), (0.5774,), (2, 2))
    smoothed = [[0.05, 0.85, 0.05, 0.05], [0.05, 0.05, 0.05, 0.85]]
    torch.testing.assert_close(soft_targets(torch.tensor([1, 3]), 4, 0.2), torch.tensor(smoothed))


STILL = Views(shift=0, zoom=0, turn=0, mirror=False, brightness=0)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def view(X: torch.Tensor, side: int | None = None, **changes: float) -> torch.Tensor:
    views = Views(**{**STILL.__dict__, **changes})  # type: ignore[arg-type]
    return random_views(X, side or X.shape[-1], views, seeded())


def test_without_changes_a_view_is_the_picture_and_half_the_side_averages_four_pixels() -> None:
    X = torch.randn(3, 2, 8, 8)
    torch.testing.assert_close(view(X), X, atol=1e-5, rtol=0)
    torch.testing.assert_close(view(X, side=4), torch.nn.functional.avg_pool2d(X, 2), atol=1e-5, rtol=0)


def test_mirrored_or_not_and_both_happen() -> None:
    X = torch.randn(1, 1, 6, 6).expand(40, -1, -1, -1)
    found = view(X, mirror=True)
    flipped = [torch.allclose(f, X[0].flip(-1), atol=1e-5) for f in found]
    own_share = [torch.allclose(f, X[0], atol=1e-5) for f in found]
    assert all(a != b for a, b in zip(flipped, own_share, strict=True))
    assert 10 < sum(flipped) < 30


def test_a_shift_moves_by_no_more_than_its_limit() -> None:
    X = torch.zeros(50, 1, 20, 20)
    X[:, :, 10, 10] = 1.0
    found = view(X, shift=0.2)
    where = (found * torch.arange(20.0)).sum(dim=(1, 2, 3)) / found.sum(dim=(1, 2, 3))
    assert (where - 10).abs().max() <= 4.01  # 0.2 of 20 pixels
    assert (where - 10).abs().max() > 3
    assert where.min() < 8 < 12 < where.max()


def test_a_turn_keeps_the_middle_a_zoom_the_level_and_light_leaves_grey_grey() -> None:
    X = torch.rand(20, 1, 9, 9)
    torch.testing.assert_close(view(X, turn=90.0)[..., 4, 4], X[..., 4, 4], atol=1e-5, rtol=0)
    level = torch.full((5, 3, 8, 8), 0.7)
    torch.testing.assert_close(view(level, zoom=0.5, turn=45, shift=0.5), level)
    X = torch.randn(1, 1, 8, 8).expand(6, 3, -1, -1)
    found = view(X, brightness=0.3)
    torch.testing.assert_close(found[:, 0], found[:, 2], atol=1e-5, rtol=0)
    assert (found[0] - found[1]).abs().max() > 0.01

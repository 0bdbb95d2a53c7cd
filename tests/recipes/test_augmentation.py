"""Views by hand: nothing changed where nothing is asked for, each change where it is."""

from __future__ import annotations

import pytest
import torch

from recipes.classification import Views, mix, random_views, soft_targets

STILL = Views(shift=0, zoom=0, turn=0, mirror=False, brightness=0, cover=0)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def view(X: torch.Tensor, side: int | None = None, **changes: float) -> torch.Tensor:
    views = Views(**{**STILL.__dict__, **changes})  # type: ignore[arg-type]
    return random_views(X, side or X.shape[-1], views, seeded())


def test_without_changes_a_view_is_the_picture() -> None:
    X = torch.randn(3, 2, 8, 8)
    torch.testing.assert_close(view(X), X, atol=1e-5, rtol=0)


def test_half_the_side_averages_four_pixels() -> None:
    X = torch.randn(2, 1, 8, 8)
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


def test_a_turn_keeps_the_middle_and_a_zoom_the_level() -> None:
    X = torch.rand(20, 1, 9, 9)
    torch.testing.assert_close(view(X, turn=90.0)[..., 4, 4], X[..., 4, 4], atol=1e-5, rtol=0)
    level = torch.full((5, 3, 8, 8), 0.7)
    torch.testing.assert_close(view(level, zoom=0.5, turn=45, shift=0.5), level)


def test_light_changes_pictures_apart_and_leaves_grey_grey() -> None:
    X = torch.randn(1, 1, 8, 8).expand(6, 3, -1, -1)
    found = view(X, brightness=0.3)
    torch.testing.assert_close(found[:, 0], found[:, 2], atol=1e-5, rtol=0)
    assert (found[0] - found[1]).abs().max() > 0.01


def test_a_cover_is_one_square_of_zeros() -> None:
    X = torch.ones(30, 2, 16, 16)
    hidden = view(X, cover=0.25) == 0
    assert torch.equal(hidden[:, 0], hidden[:, 1])
    counts = hidden[:, 0].sum(dim=(1, 2))
    assert counts.max() == 16
    assert counts.min() >= 4  # a quarter of it where it lies in a corner


def test_a_view_is_the_same_for_a_seed() -> None:
    X = torch.randn(4, 3, 8, 8)
    assert torch.equal(
        random_views(X, 8, Views(brightness=0.2), seeded(3)), random_views(X, 8, Views(brightness=0.2), seeded(3))
    )
    assert not torch.equal(random_views(X, 8, Views(), seeded(3)), random_views(X, 8, Views(), seeded(4)))


@pytest.mark.parametrize("seed", range(12))
def test_labels_are_mixed_as_pixels_are(seed: int) -> None:
    """Pictures of one level each: what is left of a picture is the share of its own label."""
    X = torch.tensor([0.0, 1.0, 4.0])[:, None, None, None].expand(3, 1, 10, 10)
    mixed, targets = mix(X, torch.eye(3), seeded(seed))
    for i in range(3):
        own, other = X[i].mean(), X[i - 1].mean()
        share = targets[i, i]
        torch.testing.assert_close(mixed[i].mean(), share * own + (1 - share) * other, atol=1e-4, rtol=0)
        assert targets[i].sum() == pytest.approx(1)


def test_both_ways_of_mixing_happen() -> None:
    X = torch.tensor([0.0, 1.0])[:, None, None, None].expand(2, 1, 10, 10)
    levels = [mix(X, torch.eye(2), seeded(seed))[0][0].unique().numel() for seed in range(20)]
    assert 1 in levels  # blended: one level everywhere
    assert 2 in levels  # pasted: two


def test_smoothed_targets_by_hand() -> None:
    torch.testing.assert_close(
        soft_targets(torch.tensor([1, 3]), 4, 0.2), torch.tensor([[0.05, 0.85, 0.05, 0.05], [0.05, 0.05, 0.05, 0.85]])
    )

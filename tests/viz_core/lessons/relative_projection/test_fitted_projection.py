"""A map fitted to the table alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from viz_core.lessons.relative_projection.fitted_projection import fit_errors, fitted_projection, sampled_positions
from viz_core.positional import relative_projection, sinusoidal_table


@pytest.mark.parametrize("offset", [-9, 0, 1, 40])
def test_finds_the_projection_where_the_rows_determine_it(offset: int) -> None:
    W, rank = fitted_projection(offset, 8, torch.arange(200), base=100.0)
    assert rank == 8
    torch.testing.assert_close(W, relative_projection(offset, 8, 100.0), atol=1e-11, rtol=0)


def test_agrees_with_numpys_pseudo_inverse() -> None:
    P = sinusoidal_table(205, 6, 100.0, torch.float64).numpy()
    expected = (np.linalg.pinv(P[:200]) @ P[5:]).T
    W, _ = fitted_projection(5, 6, torch.arange(200), base=100.0)
    np.testing.assert_allclose(W.numpy(), expected, atol=1e-12)


def test_a_short_table_is_moved_by_a_map_that_is_not_the_projection() -> None:
    """100 positions of the book's width 32: the slow hands hardly turn, and the rows span fewer than 32 directions."""
    errors = fit_errors(5, 32, 100)
    assert errors.rank < 32
    assert errors.seen < 1e-12
    assert errors.difference > 0.5


def test_a_long_table_teaches_the_projection() -> None:
    errors = fit_errors(5, 32, 100_000)
    assert errors.rank == 32
    assert max(errors.seen, errors.unseen, errors.difference) < 1e-9


def test_errors_by_brute_force() -> None:
    errors = fit_errors(-3, 4, 50, base=100.0)
    positions = sampled_positions(50, 256)
    W, _ = fitted_projection(-3, 4, positions, base=100.0)

    def row(i: int) -> np.ndarray:
        return np.array([f(i * w) for w in (1.0, 0.1) for f in (np.sin, np.cos)])

    unseen = max(np.abs(W.numpy() @ row(i) - row(i - 3)).max() for i in range(50, 100))
    assert errors.unseen == pytest.approx(unseen, abs=1e-14)
    assert errors.difference == float((W - relative_projection(-3, 4, 100.0)).abs().max())


def test_sampled_positions_are_different_and_the_same_each_time() -> None:
    positions = sampled_positions(1_000_000, 300)
    assert len(positions.unique()) == 300
    assert positions.max() < 1_000_000
    assert torch.equal(positions, sampled_positions(1_000_000, 300))
    assert torch.equal(sampled_positions(7, 300), torch.arange(7))


def test_refuses() -> None:
    with pytest.raises(ValueError, match="even number, got 5"):
        fit_errors(1, 5, 100)

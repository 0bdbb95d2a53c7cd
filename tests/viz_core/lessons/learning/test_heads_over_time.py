"""Heads over time, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tests.viz_core.lessons.learning.made_films import made_film
from viz_core.lessons.learning.runs import (
    head_measures,
    shot_weights,
)

EVEN = np.tril(np.ones((3, 3))) / np.arange(1, 4)[:, None]
PREVIOUS = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0]])
MAPS = np.stack([np.stack([EVEN, EVEN]), np.stack([EVEN, PREVIOUS])])[:, None]  # 2 shots, 1 layer, 2 heads


def test_measures_of_each_shot_and_head() -> None:
    found = head_measures(made_film(MAPS, "aba", [0, 1]))
    np.testing.assert_allclose(found["previous"][:, 0], [[5 / 12, 5 / 12], [5 / 12, 1]], atol=1e-3)
    np.testing.assert_allclose(found["induction"][:, 0], [[1 / 3, 1 / 3], [1 / 3, 1]], atol=1e-3)
    np.testing.assert_allclose(found["diagonal"][1, 0], [11 / 18, 1 / 3], atol=1e-3)
    np.testing.assert_allclose(found["first"][1, 0], [11 / 18, 2 / 3], atol=1e-3)
    np.testing.assert_allclose(found["entropy"][1, 0], [(1 + np.log2(3)) / 3, 0], atol=1e-2)


def test_later_shots_alone_are_the_end_of_all() -> None:
    film = made_film(MAPS, "aba", [0, 1])
    for name, measured in head_measures(film, since=1).items():
        np.testing.assert_array_equal(measured, head_measures(film)[name][1:])


@pytest.mark.parametrize("read", ["abc", ["a", "?", "?"]])
def test_where_no_token_comes_twice_there_is_no_induction(read: str | list[str]) -> None:
    assert "induction" not in head_measures(made_film(MAPS, read, [0, 1]))


def test_rows_sum_to_one_again_after_rounding() -> None:
    weights = shot_weights(made_film(MAPS, "aba", [0, 1]), 0)
    np.testing.assert_allclose(weights.sum(dim=-1), 1, atol=1e-6)

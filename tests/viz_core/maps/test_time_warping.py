"""Dynamic time warping by hand, by trying every way, and as transformers has it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers.models.whisper.generation_whisper import _dynamic_time_warping, _median_filter

from viz_core.maps.alignments import median_filter, token_starts, warping_path

SIZES = st.tuples(st.integers(1, 8), st.integers(1, 20))
# Small whole numbers: many ways cost the same.
COSTS = st.tuples(st.integers(1, 4), st.integers(1, 5)).flatmap(
    lambda size: st.lists(st.integers(-4, 4), min_size=size[0] * size[1], max_size=size[0] * size[1]).map(
        lambda numbers: np.array(numbers, dtype=np.float64).reshape(size)
    )
)


def ways(rows: int, columns: int) -> Iterator[list[tuple[int, int]]]:
    """Every way from the first cell to the one in this row and column."""
    if (rows, columns) == (0, 0):
        yield [(0, 0)]
    for down, across in ((1, 1), (1, 0), (0, 1)):
        if rows >= down and columns >= across:
            yield from ([*way, (rows, columns)] for way in ways(rows - down, columns - across))


def test_a_way_by_hand() -> None:
    """Three words, five moments: the first says 0 and 1, the second 2, the third the rest."""
    cost = np.array([[-5, -5, 0, 0, 0], [0, 0, -5, 0, 0], [0, 0, 0, -5, -5.0]])
    assert warping_path(cost).tolist() == [[0, 0], [0, 1], [1, 2], [2, 3], [2, 4]]
    assert warping_path(np.zeros((3, 1))).tolist() == [[0, 0], [1, 0], [2, 0]], "more words than moments"
    assert warping_path(np.zeros((1, 3))).tolist() == [[0, 0], [0, 1], [0, 2]]


@given(SIZES, st.integers(0, 999))
def test_as_transformers_has_it(size: tuple[int, int], seed: int) -> None:
    """Where no two ways cost the same: of three alike it takes one, and of two the third, which may cost more."""
    cost = np.random.default_rng(seed).standard_normal(size)
    rows, columns = _dynamic_time_warping(cost)
    assert warping_path(cost).T.tolist() == [rows.tolist(), columns.tolist()]


@given(COSTS)
def test_no_other_way_is_cheaper(cost: np.ndarray) -> None:
    rows, columns = cost.shape
    cheapest = min(sum(cost[cell] for cell in way) for way in ways(rows - 1, columns - 1))
    assert sum(cost[i, j] for i, j in warping_path(cost)) == cheapest


@pytest.mark.parametrize("cost", [np.zeros((0, 3)), np.full((2, 2), np.nan)])
def test_what_is_no_matrix_of_costs_is_refused(cost: np.ndarray) -> None:
    with pytest.raises(ValueError, match="expected at least one cell and no NaN"):
        warping_path(cost)


@pytest.mark.parametrize("keys", [1, 3, 4, 5, 40])
def test_the_median_is_that_of_transformers(keys: int) -> None:
    values = torch.rand(2, 3, keys, generator=torch.Generator().manual_seed(keys))
    assert torch.equal(median_filter(values, 7), _median_filter(values[None], 7)[0])


def test_starts_follow_a_planted_staircase() -> None:
    """Token i lights up keys 8 i to 8 i + 7 in one head; the other says nothing; one spike is not a start."""
    weights = torch.full((2, 5, 40), 0.01)
    for token in range(5):
        weights[0, token, 8 * token : 8 * token + 8] = 0.1
    weights[0, 4, 3] = 0.9
    assert token_starts(weights, width=3).tolist() == [0, 8, 16, 24, 32]


def test_one_token_has_all_the_time() -> None:
    assert token_starts(torch.rand(1, 1, 30)).tolist() == [0]


@given(st.integers(1, 5), st.integers(1, 12), st.integers(0, 99))
def test_starts_never_go_back(tokens: int, keys: int, seed: int) -> None:
    weights = torch.rand(2, tokens, keys, generator=torch.Generator().manual_seed(seed))
    starts = token_starts(weights, width=3)
    assert len(starts) == tokens
    assert starts[0] == 0
    assert bool((np.diff(starts) >= 0).all())
    assert starts[-1] < keys


@pytest.mark.parametrize(("shape", "width"), [((0, 2, 3), 7), ((1, 0, 3), 7), ((1, 2, 0), 7), ((1, 2, 3), 4)])
def test_no_head_token_or_key_or_an_even_width(shape: tuple[int, int, int], width: int) -> None:
    with pytest.raises(ValueError, match="odd width"):
        token_starts(torch.rand(shape), width)

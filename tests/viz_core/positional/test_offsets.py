"""Position of the key minus position of the query."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from viz_core.positional import relative_positions


def test_by_hand() -> None:
    assert relative_positions(3, 3).tolist() == [[0, 1, 2], [-1, 0, 1], [-2, -1, 0]]
    assert relative_positions(2, 4).tolist() == [[-2, -1, 0, 1], [-3, -2, -1, 0]]
    assert relative_positions(1, 1).tolist() == [[0]]


@settings(max_examples=20)
@given(num_queries=st.integers(1, 8), cached=st.integers(0, 8))
def test_by_loops(num_queries: int, cached: int) -> None:
    num_keys = num_queries + cached
    expected = [[j - (cached + i) for j in range(num_keys)] for i in range(num_queries)]
    assert relative_positions(num_queries, num_keys).tolist() == expected


def test_refuses_impossible_sizes() -> None:
    with pytest.raises(ValueError, match="num_queries: expected at least 1, got 0"):
        relative_positions(0, 3)
    with pytest.raises(ValueError, match="num_keys: expected at least num_queries=3, got 2"):
        relative_positions(3, 2)

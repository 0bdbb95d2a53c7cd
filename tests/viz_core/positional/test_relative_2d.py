"""Relative positions on a grid, against a double loop over tokens in row-major order."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from viz_core.positional import RelativePositionEmbedding2d


@settings(max_examples=40)
@given(
    height=st.integers(1, 4),
    width=st.integers(1, 4),
    d=st.integers(1, 4),
    heads=st.integers(1, 3),
    own_tables=st.booleans(),
    seed=st.integers(0, 99),
)
def test_scores_by_loops(height: int, width: int, d: int, heads: int, own_tables: bool, seed: int) -> None:
    torch.manual_seed(seed)
    embedding = RelativePositionEmbedding2d(height, width, d, heads if own_tables else None).double()
    tokens = height * width
    q = torch.randn(2, heads, tokens, d, dtype=torch.float64)
    expected = torch.empty(2, heads, tokens, tokens, dtype=torch.float64)
    for h in range(heads):
        rows = embedding.rows.weight[h] if own_tables else embedding.rows.weight
        columns = embedding.columns.weight[h] if own_tables else embedding.columns.weight
        for i in range(tokens):
            for j in range(tokens):
                down = j // width - i // width
                across = j % width - i % width
                expected[:, h, i, j] = q[:, h, i] @ (rows[down + height - 1] + columns[across + width - 1])
    torch.testing.assert_close(embedding(q), expected, atol=1e-13, rtol=0)


def test_two_by_three_grid_by_hand() -> None:
    embedding = RelativePositionEmbedding2d(2, 3, head_dim=1)
    with torch.no_grad():
        embedding.rows.weight[:, 0] = torch.tensor([-10.0, 0, 10])
        embedding.columns.weight[:, 0] = torch.tensor([-2.0, -1, 0, 1, 2])
    scores = embedding(torch.ones(1, 1, 6, 1))[0, 0]
    assert scores[0].tolist() == [0, 1, 2, 10, 11, 12]
    assert scores[4].tolist() == [-11, -10, -9, -1, 0, 1]


def test_only_the_two_tables_are_saved() -> None:
    shapes = {
        name: tuple(t.shape) for name, t in RelativePositionEmbedding2d(2, 3, 4, num_heads=5).state_dict().items()
    }
    assert shapes == {"rows.weight": (5, 3, 4), "columns.weight": (5, 5, 4)}


def test_refuses_queries_that_do_not_fit() -> None:
    embedding = RelativePositionEmbedding2d(2, 3, 4, num_heads=2)
    for shape in ((1, 2, 5, 4), (1, 2, 6, 3), (1, 1, 6, 4)):
        with pytest.raises(ValueError, match=r"q: expected shape \(batch, 2, 6, 4\), got \(1, "):
            embedding(torch.zeros(shape))


@pytest.mark.parametrize(
    ("sizes", "name"),
    [((0, 3, 4), "height"), ((3, 0, 4), "width"), ((3, 3, 0), "head_dim"), ((3, 3, 4, 0), "num_heads")],
)
def test_refuses_impossible_sizes(sizes: tuple[int, ...], name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: expected at least 1, got 0"):
        RelativePositionEmbedding2d(*sizes)

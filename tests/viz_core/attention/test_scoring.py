"""Scoring functions and the batched product, against loops and numbers worked by hand."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from viz_core.attention.scores import batch_product, dot_scores, general_scores, scaled_dot_scores


def test_the_books_shapes() -> None:
    assert batch_product(torch.ones(2, 3, 4), torch.ones(2, 4, 6)).shape == (2, 3, 6)
    assert torch.equal(batch_product(torch.ones(2, 3, 4), torch.ones(2, 4, 6)), torch.full((2, 3, 6), 4.0))


@settings(max_examples=30)
@given(*[st.integers(1, 4)] * 4)
def test_a_product_is_its_sums(b: int, n: int, m: int, p: int) -> None:
    X, Y = torch.randn(b, n, m, dtype=torch.float64), torch.randn(b, m, p, dtype=torch.float64)
    Z = batch_product(X, Y)
    for s in range(b):
        for i in range(n):
            for j in range(p):
                assert float(Z[s, i, j]) == pytest.approx(sum(float(X[s, i, k] * Y[s, k, j]) for k in range(m)))


def test_scores_worked_by_hand() -> None:
    queries, keys = (
        torch.tensor([[[1.0, 2.0, 0.0, -1.0]]]),
        torch.tensor([[[3.0, 0.5, 9.0, 1.0], [0.0, 0.0, 5.0, 0.0]]]),
    )
    assert dot_scores(queries, keys).tolist() == [[[3.0, 0.0]]]
    assert scaled_dot_scores(queries, keys).tolist() == [[[1.5, 0.0]]]


def test_general_worked_by_hand_where_widths_differ() -> None:
    """q = (1, 2), k = (1, 0, -1), M k = (-2, -2): q . (M k) = -6."""
    M = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert general_scores(torch.tensor([[[1.0, 2.0]]]), torch.tensor([[[1.0, 0.0, -1.0]]]), M).tolist() == [[[-6.0]]]


@settings(max_examples=20)
@given(st.integers(1, 20), st.integers(1, 20))
def test_general_is_its_double_sum(query_size: int, key_size: int) -> None:
    queries, keys, M = torch.randn(2, 2, query_size), torch.randn(2, 3, key_size), torch.randn(query_size, key_size)
    expected = torch.einsum("bid,de,bje->bij", queries.double(), M.double(), keys.double())
    torch.testing.assert_close(general_scores(queries, keys, M).double(), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.usefixtures("shapes_unchecked")
def test_refuses_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="expected as many columns in X as rows in Y, got 4 and 5"):
        batch_product(torch.zeros(2, 3, 4), torch.zeros(2, 5, 6))
    with pytest.raises(ValueError, match="expected batches of one size, got 2 and 1"):
        batch_product(torch.zeros(2, 3, 4), torch.zeros(1, 4, 6))
    with pytest.raises(ValueError, match=r"expected two batches of matrices, got shapes \(3, 4\) and \(4, 6\)"):
        batch_product(torch.zeros(3, 4), torch.zeros(4, 6))
    with pytest.raises(ValueError, match="expected queries and keys of one width, got 20 and 2"):
        scaled_dot_scores(torch.zeros(2, 1, 20), torch.zeros(2, 10, 2))
    with pytest.raises(ValueError, match=r"M: expected shape \(20, 2\), got \(2, 20\)"):
        general_scores(torch.zeros(2, 1, 20), torch.zeros(2, 10, 2), torch.zeros(2, 20))

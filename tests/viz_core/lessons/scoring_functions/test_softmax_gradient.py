"""The gradient of one weight: by hand, against finite differences, and none through a mask."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from viz_core.attention import masked_softmax
from viz_core.lessons.scoring_functions.mask_variants import (
    weight_gradient,
    weight_gradient_by_formula,
)


def test_worked_by_hand() -> None:
    """Two equal scores: a (1 - a) = 1/4 on the key itself, -1/4 on the other, nothing behind the mask."""
    scores = torch.tensor([[[3.0, 3.0, 9.0]]])
    assert weight_gradient(scores, torch.tensor([2]), 0).tolist() == [[[0.25, -0.25, 0.0]]]


@settings(max_examples=40)
@given(st.integers(1, 3), st.integers(1, 6), st.integers(0, 5), st.integers(0, 6))
def test_formula_and_differentiation_agree(queries: int, keys: int, key: int, length: int) -> None:
    key, length = key % keys, min(length, keys)
    scores, lengths = 3 * torch.randn(2, queries, keys), torch.tensor([length, keys])
    before = scores.clone()
    gradient = weight_gradient(scores, lengths, key)
    assert torch.equal(scores, before)
    torch.testing.assert_close(
        gradient, weight_gradient_by_formula(masked_softmax(scores, lengths), key), atol=1e-6, rtol=0
    )
    torch.testing.assert_close(gradient.sum(dim=-1), torch.zeros(2, queries), atol=1e-6, rtol=0)
    assert torch.equal(gradient[0, :, length:], torch.zeros(queries, keys - length))
    assert float(gradient.max()) <= 0.25 + 1e-6


def test_finite_differences() -> None:
    scores, lengths = torch.randn(1, 2, 4, dtype=torch.float64), torch.tensor([[3, 4]])
    gradient = weight_gradient(scores, lengths, 1)
    for i in range(2):
        for j in range(4):
            step = torch.zeros_like(scores)
            step[0, i, j] = 1e-6
            change = masked_softmax(scores + step, lengths)[0, i, 1] - masked_softmax(scores - step, lengths)[0, i, 1]
            assert float(gradient[0, i, j]) == pytest.approx(float(change) / 2e-6, abs=1e-8)


def test_it_works_where_gradients_are_off() -> None:
    with torch.no_grad():
        assert weight_gradient(torch.zeros(1, 1, 2), None, 1).tolist() == [[[-0.25, 0.25]]]

"""Costs by hand, against real parameters, and against torch's own counter of operations."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from viz_core.attention import MultiHeadAttention
from viz_core.lessons.multi_head.book_examples import divisors, multi_head_cost


def test_by_hand() -> None:
    """d = 64, n = 10: 4 d^2 = 16,384, 4 n d^2 = 163,840, 2 n^2 d = 12,800, h n^2 = 800."""
    cost = multi_head_cost(10, 64, 8)
    assert (cost.parameters, cost.projections, cost.products, cost.weights) == (16_384, 163_840, 12_800, 800)
    assert cost.multiplications == 176_640


@pytest.mark.parametrize("heads", [1, 2, 4, 8])
def test_torch_counts_the_same(heads: int) -> None:
    with torch.device("meta"):
        layer, X = MultiHeadAttention(16, heads), torch.empty(1, 5, 16)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        layer(X, X, X)
    cost = multi_head_cost(5, 16, heads)
    assert counter.get_total_flops() == 2 * cost.multiplications  # it counts multiplications and additions
    assert sum(p.numel() for p in layer.parameters()) == cost.parameters


@given(st.integers(1, 40), st.integers(1, 200), st.data())
def test_only_the_weights_depend_on_the_heads(n: int, d: int, data: st.DataObject) -> None:
    heads = data.draw(st.sampled_from(divisors(d)))
    one, many = multi_head_cost(n, d, 1), multi_head_cost(n, d, heads)
    assert (one.parameters, one.multiplications) == (many.parameters, many.multiplications)
    assert many.weights == heads * one.weights


def test_divisors() -> None:
    assert divisors(1) == [1]
    assert divisors(64) == [1, 2, 4, 8, 16, 32, 64]
    assert divisors(100) == [1, 2, 4, 5, 10, 20, 25, 50, 100]
    assert divisors(97) == [1, 97]

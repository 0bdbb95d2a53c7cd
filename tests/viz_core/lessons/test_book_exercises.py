"""Costs and savings that answer exercises of the book: counted by hand, or on the models themselves."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from viz_core.lessons.architectures.cheaper import (
    held,
    linear_attention,
    savings,
    tiled_attention,
    whole_attention,
    window_attention,
)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 4), st.integers(1, 6), st.integers(1, 5), st.floats(0.1, 200))
def test_tiles_change_nothing_at_any_size_however_large_the_scores(
    blocks: int, width: int, d: int, size: float
) -> None:
    Q, K, V = (size * torch.randn(blocks * width, d, dtype=torch.float64) for _ in range(3))
    torch.testing.assert_close(tiled_attention(Q, K, V, width), whole_attention(Q, K, V))


def test_a_window_as_wide_as_the_text_on_both_sides_is_whole_attention() -> None:
    Q, K, V = (torch.randn(5, 3, dtype=torch.float64) for _ in range(3))
    torch.testing.assert_close(window_attention(Q, K, V, 10), whole_attention(Q, K, V))
    torch.testing.assert_close(window_attention(Q, K, V, 1), V)


def test_linear_attention_is_that_of_its_kernel() -> None:
    Q, K, V = (torch.randn(6, 3, dtype=torch.float64) for _ in range(3))
    kernel = (torch.nn.functional.elu(Q) + 1) @ (torch.nn.functional.elu(K) + 1).T
    torch.testing.assert_close(linear_attention(Q, K, V), kernel / kernel.sum(dim=1, keepdim=True) @ V)


def test_what_each_way_saves() -> None:
    found = savings(8, 4, 2)
    assert {name: (each.held, each.multiplications) for name, each in found.items()} == {
        "whole": (64, 512),
        "tiles": (4, 512),
        "window": (16, 128),
        "linear": (16, 256),
    }


def test_what_a_layer_holds() -> None:
    assert held(10, 8, 2) == {"parameters": 256, "keys": 160, "weights": 200, "path": 1}

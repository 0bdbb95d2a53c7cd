"""Attention distance against loops over patches, and the uniform baseline by hand."""

from __future__ import annotations

import math
from itertools import product

import pytest
import torch

from viz_core.maps.distance import mean_attention_distance, uniform_attention_distance


def test_against_loops() -> None:
    weights = torch.randn(2, 3, 7, 7).softmax(dim=-1)
    found = mean_attention_distance(weights, (2, 3), (4, 5))
    places = [(4.0 * r, 5.0 * c) for r in range(2) for c in range(3)]
    for layer, head in product(range(2), range(3)):
        total = 0.0
        for i in range(6):
            w = [float(weights[layer, head, 1 + i, 1 + j]) for j in range(6)]
            total += sum(w[j] * math.dist(places[i], places[j]) for j in range(6)) / sum(w)
        assert found[layer, head] == pytest.approx(total / 6, abs=1e-5)


def test_each_to_itself_is_zero_and_each_to_its_neighbour_one_patch() -> None:
    itself = torch.eye(5)
    assert mean_attention_distance(itself, (2, 2), (7, 7)) == 0
    beside = torch.eye(5)[[0, 2, 1, 4, 3]]  # in a 2 x 2 grid: the other of the same row
    assert mean_attention_distance(beside, (2, 2), (7, 3)) == 3


def test_the_class_token_is_left_out() -> None:
    weights = torch.zeros(3, 3)
    weights[:, 0] = 0.9
    weights[1, 2] = weights[2, 1] = 0.1  # all that is left goes one patch on
    assert mean_attention_distance(weights, (1, 2), (4, 4)) == pytest.approx(4)
    weights[2] = torch.tensor([1.0, 0.0, 0.0])  # and a patch that sees no patch does not count
    assert mean_attention_distance(weights, (1, 2), (4, 4)) == pytest.approx(4)
    assert mean_attention_distance(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), (1, 1), (4, 4)) == 0


def test_the_uniform_baseline() -> None:
    # 2 x 2 patches of 1 pixel: to itself 0, two neighbours 1, the diagonal sqrt 2
    assert uniform_attention_distance((2, 2), (1, 1)) == pytest.approx((2 + math.sqrt(2)) / 4)
    uniform = torch.full((50, 50), 1 / 50)
    assert mean_attention_distance(uniform, (7, 7), (4, 4)) == pytest.approx(uniform_attention_distance((7, 7), (4, 4)))


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="1 special tokens and 2 x 2 patches, a side of 5, got maps of 4 x 4"):
        mean_attention_distance(torch.zeros(4, 4), (2, 2), (1, 1))
    with pytest.raises(ValueError, match="at least 1 x 1"):
        uniform_attention_distance((0, 2), (1, 1))

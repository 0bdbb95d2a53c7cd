"""The book's toy by hand, heads of unequal range, and multi-head attention done wrong."""

from __future__ import annotations

import pytest
import torch

from viz_core.lessons.multi_head.book_examples import book_toy, mean_ranges, uniform_range
from viz_core.lessons.multi_head.broken import dealt_out, undivided, wrong_root
from viz_core.lessons.multi_head.inputs import fresh_layer, random_tokens
from viz_core.lessons.multi_head.steps import multi_head_steps


def test_ones_share_the_weight_among_the_words_of_each_sentence() -> None:
    toy = book_toy()
    assert toy.output.shape == (2, 4, 100)
    assert toy.weights.shape == (2, 5, 4, 6)
    assert toy.weights[0, 2, 1].tolist() == pytest.approx([1 / 3] * 3 + [0] * 3)
    assert toy.weights[1, 4, 3].tolist() == pytest.approx([0.5, 0.5, 0, 0, 0, 0])
    assert toy.parameters == 4 * 100 * 100


def test_three_widths_may_differ() -> None:
    toy = book_toy(20, 7, 3, ones=False)
    assert toy.output.shape == (2, 4, 100)
    assert toy.parameters == 100 * (20 + 7 + 3 + 100)
    assert not toy.weights[0, :, :, 3:].any()
    assert float(toy.weights[0, 0].std(dim=0).max()) > 0.01  # queries differ in what they look at
    with pytest.raises(ValueError, match="widths: expected at least 1, got 0, 100 and 100"):
        book_toy(0)


def test_ranges_by_hand() -> None:
    near, even = torch.eye(5), torch.full((5, 5), 0.2)
    first = torch.zeros(5, 5).index_fill(1, torch.tensor([0]), 1.0)
    assert mean_ranges(torch.stack([near, even, first])).tolist() == pytest.approx([0, uniform_range(5), 2])
    assert uniform_range(5) == pytest.approx(1.6)


def test_done_wrong() -> None:
    layer, one = fresh_layer(16, 4, 2.0), fresh_layer(16, 1, 2.0)
    X = random_tokens(6, 16).X[None]
    steps, alone = multi_head_steps(layer, X), multi_head_steps(one, X)
    assert min(wrong_root(layer, steps)) > 1e-2
    assert max(wrong_root(one, alone)) < 1e-5  # one head is as wide as the layer
    assert dealt_out(layer, steps) > 1e-2
    assert dealt_out(one, alone) < 1e-5
    assert undivided(steps) > 0.1

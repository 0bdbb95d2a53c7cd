"""The book's toy by hand, heads of unequal range, and multi-head attention done wrong."""

from __future__ import annotations

import pytest
import torch

from viz_core.lessons.multi_head.book_examples import book_toy, is_separator, mean_ranges, uniform_range
from viz_core.lessons.multi_head.broken import ERRORS, residuals, variant
from viz_core.lessons.multi_head.steps import fresh_layer, multi_head_steps, random_tokens, trained_input, trained_layer
from viz_core.pretrained import load
from viz_core.pretrained.samples import sentence


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


def test_ranges_by_hand() -> None:
    diagonal, even = torch.eye(5), torch.full((5, 5), 0.2)
    first = torch.zeros(5, 5).index_fill(1, torch.tensor([0]), 1.0)
    assert mean_ranges(torch.stack([diagonal, even, first])).tolist() == pytest.approx([0, uniform_range(range(5)), 2])
    assert uniform_range(range(5)) == pytest.approx(1.6)


def test_ranges_without_separators_leave_them_out_as_queries_and_as_keys() -> None:
    """Half of every row on the full stop: with it the head looks far, among words alone at itself."""
    weights = torch.eye(4) / 2
    weights[:, 3] += 0.5
    assert float(mean_ranges(weights[None])[0]) == pytest.approx((1.5 + 1 + 0.5) / 4)
    assert float(mean_ranges(weights[None], [0, 1, 2])[0]) == 0
    assert uniform_range([0, 1, 3]) == pytest.approx((1 + 3 + 2) * 2 / 9)
    tokens = ["The", "children", "'", "s", "<eos>", ".", "9"]
    assert [token for token in tokens if is_separator(token)] == ["'", "<eos>", "."]


def test_among_words_most_heads_look_nearer_than_a_uniform_head() -> None:
    """Over all tokens 7 of 8 look farther: most of their weight is on the full stop and <eos>."""
    translator = load("transformer-en-fr", device="cpu")
    tokens = trained_input(translator, sentence("cat"), 2, 64)
    weights = multi_head_steps(trained_layer(translator, 2, 8), tokens.X[None]).weights[0]
    words = [place for place, token in enumerate(tokens.labels) if not is_separator(token)]
    separators = sorted(set(range(len(tokens.labels))) - set(words))
    assert int((mean_ranges(weights) > uniform_range(range(len(tokens.labels)))).sum()) == 7
    assert int((mean_ranges(weights, words) < uniform_range(words)).sum()) == 7
    assert float(weights[..., separators].sum(dim=-1).mean(dim=-1).min()) > 0.4


def test_done_wrong() -> None:
    layer, one = fresh_layer(16, 4, 2.0), fresh_layer(16, 1, 2.0)
    X = random_tokens(6, 16).X[None]
    steps, alone = multi_head_steps(layer, X), multi_head_steps(one, X)
    assert max(residuals(layer, steps)) < 1e-5
    for error in ERRORS:
        assert min(residuals(layer, steps, error)) > 1e-2, error
    assert max(residuals(one, alone, "wrong-root")) < 1e-5  # one head is as wide as the layer
    assert max(residuals(one, alone, "dealt-out")) < 1e-5
    sums = variant(layer, steps, "undivided").weights.sum(dim=-1)
    assert float((sums - 1).abs().max()) > 0.1

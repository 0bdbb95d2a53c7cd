"""The book's examples worked out by hand, additive attention as a network, and masks done wrong."""

from __future__ import annotations

import pytest
import torch

from viz_core.lessons.scoring_functions.broken import gradient_without_delta, written_by_the_book
from viz_core.lessons.scoring_functions.exercises import (
    book_weights,
    concatenation_error,
    dot_product_toy,
    drop,
    sentence_weights,
)


def test_the_books_masked_softmax() -> None:
    assert book_weights().tolist() == pytest.approx([0.268941, 0.731059, 0, 0], abs=1e-6)


def test_three_sentences_share_their_weight_among_their_words() -> None:
    rows = [[0.25] * 4, [1 / 3] * 3 + [0], [0.5, 0.5, 0, 0]]
    assert sentence_weights().tolist() == [pytest.approx(row) for row in rows]


def test_equal_keys_give_the_mean_of_what_may_be_seen() -> None:
    toy = dot_product_toy(equal_keys=True)
    assert toy.output.shape == (2, 1, 4)
    assert toy.output.flatten().tolist() == pytest.approx([2, 3, 4, 5, 10, 11, 12, 13])
    torch.testing.assert_close(toy.dropped, toy.weights)
    random = dot_product_toy(equal_keys=False)
    assert float(random.weights[1, :6].max()) > 0.2
    assert not random.weights[0, 2:].any()


def test_dropout_keeps_the_mean_and_not_the_sum() -> None:
    generator = torch.Generator().manual_seed(0)
    weights = torch.full((2000, 4), 0.25)
    dropped = drop(weights, 0.5, generator)
    assert set(dropped.unique().tolist()) == {0.0, 0.5}
    assert float(dropped.mean()) == pytest.approx(0.25, abs=0.02)
    assert float(dropped.sum(dim=1).std()) > 0.3


def test_additive_attention_is_a_network_on_the_concatenation() -> None:
    assert concatenation_error() < 1e-6


def test_masks_done_wrong() -> None:
    scores = torch.tensor([[[1.0, 2.0, 3.0]]])
    assert written_by_the_book(scores, torch.tensor([2])) == pytest.approx(1e6 + 3)
    assert written_by_the_book(scores, None) == 0
    assert scores.tolist() == [[[1, 2, 3]]]  # a copy
    weights = scores.softmax(dim=-1)
    assert (gradient_without_delta(weights, 1) < 0).all()

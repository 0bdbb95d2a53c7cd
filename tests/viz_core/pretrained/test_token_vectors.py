"""Tokens to try layers on: sentences with and without the translator, and another order."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from viz_core.pretrained import Translator
from viz_core.pretrained.token_vectors import (
    sentence_tokens,
    shuffled_order,
)


def test_words_without_a_model_have_a_vector_each() -> None:
    tokens = sentence_tokens("the cat  the\tdog", 10, 16)
    assert tokens.labels == ("the", "cat", "the", "dog")
    assert torch.equal(tokens.X[0], tokens.X[2])
    assert not torch.equal(tokens.X[0], tokens.X[1])
    assert (tokens.height, tokens.width, tokens.total) == (1, 4, 4)


def test_the_translators_tokens_and_scaled_embeddings(translator: Translator) -> None:
    tokens = sentence_tokens("The cat is on the bed.", 100, 16, translator)
    ids = translator.tokenizer.encode("The cat is on the bed.").ids
    assert tokens.labels == translator.readable_tokens(ids)
    expected = translator.model.encoder.embedding.weight[ids] * math.sqrt(tokens.X.shape[1])
    torch.testing.assert_close(tokens.X, expected.detach())


@pytest.mark.parametrize("text", ["", "  \t ", "\x00\x07", "\u200b"])
def test_nothing_to_see_is_no_tokens(text: str, translator: Translator) -> None:
    assert sentence_tokens(text, 10, 16).labels == ()
    assert sentence_tokens(text, 10, 16, translator).labels == ()


def test_long_texts_are_cut_and_say_how_long_they_were() -> None:
    tokens = sentence_tokens("word " * 300, 64, 16)
    assert (len(tokens.labels), tokens.total, tuple(tokens.X.shape)) == (64, 300, (64, 16))


def test_one_word_stands_everywhere() -> None:
    tokens = sentence_tokens("a b c", 10, 16).one_word()
    assert tokens.labels == ("a", "a", "a")
    assert torch.equal(tokens.X, tokens.X[:1].expand(3, 16))


@given(
    tokens=st.lists(st.sampled_from("abc"), min_size=2, max_size=9).filter(lambda t: len(set(t)) > 1),
    seed=st.integers(0, 99),
)
def test_a_shuffle_keeps_the_tokens_and_changes_their_order(tokens: list[str], seed: int) -> None:
    order = shuffled_order(tokens, seed).tolist()
    assert sorted(order) == list(range(len(tokens)))
    assert [tokens[i] for i in order] != tokens


@pytest.mark.parametrize("tokens", [[], ["a"], ["a", "a", "a"]])
def test_equal_tokens_cannot_be_shuffled(tokens: list[str]) -> None:
    with pytest.raises(ValueError, match="at least two different"):
        shuffled_order(tokens, 0)

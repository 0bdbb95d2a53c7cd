"""Cleaning, special tokens, and tokens as people read them."""

import math
import unicodedata

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from viz_core.pretrained import Translator
from viz_core.pretrained.token_vectors import (
    sentence_tokens,
    shuffled_order,
)
from viz_core.pretrained.tokenization import UNK, clean, special_tokens, token_id

# Cleaning


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ça va\u202f?", "Ça va ?"),
        ("\u00abOui\u00a0!\u00bb", "«Oui !»"),
        ("J\u2019ai", "J'ai"),
        ("e\u0301te\u0301", "été"),
        ("\ufb01n…", "fin..."),
        ("ze\u200bro\u200d wi\ufeffdth", "zero width"),
        ("soft\u00adhyphen", "softhyphen"),
        ("\u202eright\u202c \u2067to\u2069 \u200fleft\u200e", "right to left"),
        ("e\u200b\u0301", "é"),
        ("a\tb\nc\r\nd", "a b c d"),
        ("nul\x00l bell\x07 esc\x1b[0m", "nul l bell esc [0m"),
        ("half a pair \ud83d", "half a pair"),
        ("  many   spaces  ", "many spaces"),
        ("line\u2028paragraph\u2029end", "line paragraph end"),
        ("plain text stays.", "plain text stays."),
        ("\u200b\u00ad\x00 \t", ""),
        ("", ""),
    ],
)
def test_clean(text: str, expected: str) -> None:
    assert clean(text) == expected


@settings(max_examples=300)
@given(st.text(alphabet=st.characters(exclude_categories=[])))
def test_clean_text_is_clean(text: str) -> None:
    cleaned = clean(text)
    assert clean(cleaned) == cleaned
    assert not any(unicodedata.category(c) in {"Cc", "Cf", "Cs"} for c in cleaned)
    assert unicodedata.is_normalized("NFKC", cleaned.replace("'", ""))
    assert cleaned == " ".join(cleaned.split(" "))
    cleaned.encode("utf-8")


# Tokens


def test_a_vocabulary_without_special_tokens_is_refused() -> None:
    bare = Tokenizer(WordLevel({"<pad>": 0, "<bos>": 1, "word": 2}))
    with pytest.raises(ValueError, match="expected the tokenizer to have '<eos>'"):
        special_tokens(bare)
    with pytest.raises(ValueError, match="expected the tokenizer to have '<unk>'"):
        token_id(bare, UNK)


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

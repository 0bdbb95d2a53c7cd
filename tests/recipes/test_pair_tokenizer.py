"""Pieces that readers see as words, and the way from text to ids and back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from recipes.pair_tokenizer import train_tokenizer
from tests.tiny_translator import CORPUS, TOKENIZER
from viz_core.maps.word_maps import word_numbers
from viz_core.pretrained.tokenization import (
    BOS,
    EOS,
    PAD,
    UNK,
    WORD_START,
    SpecialTokens,
    clean,
    special_tokens,
    token_id,
)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer([text for pair in CORPUS for text in pair], vocab_size=300)


# Pieces


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("J'ai faim.", ["▁J'", "ai", "▁faim", "."]),
        ("Qu'il n'est", ["▁Qu'", "il", "▁n'", "est"]),
        ("lorsqu'elle", ["▁lorsqu'", "elle"]),
        ("aujourd'hui", ["▁aujourd'hui"]),
        ("I'm home", ["▁I", "'m", "▁home"]),
        ("We don't know", ["▁We", "▁do", "n't", "▁know"]),
        ("Tom's they'll", ["▁Tom", "'s", "▁they", "'ll"]),
        ("in 1984!", ["▁in", "▁1", "9", "8", "4", "!"]),
        ("Va !", ["▁Va", "▁!"]),
        ("est-il", ["▁est", "-", "il"]),
        ("(oui)", ["▁(", "oui", ")"]),
    ],
)
def test_pieces_are_words_as_people_see_them(tokenizer: Tokenizer, text: str, pieces: list[str]) -> None:
    assert [piece for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text)] == pieces


def test_no_token_crosses_a_piece(tokenizer: Tokenizer) -> None:
    for pair in CORPUS:
        for text in pair:
            pieces = [piece for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text)]
            tokens = tokenizer.encode(text).tokens
            assert "".join(tokens) == "".join(pieces)
            for piece in pieces:
                taken = ""
                while len(taken) < len(piece):
                    taken += tokens.pop(0)
                assert taken == piece


def test_frequent_pieces_are_one_token() -> None:
    tokenizer = train_tokenizer(["J'ai perdu.", "I'm home.", "I don't know."] * 3, vocab_size=500)
    assert tokenizer.encode("J'ai perdu.").tokens == ["▁J'", "ai", "▁perdu", "."]
    assert tokenizer.encode("I'm").tokens == ["▁I", "'m"]
    assert tokenizer.encode("I don't know").tokens == ["▁I", "▁do", "n't", "▁know"]


# There and back


def test_known_text_comes_back(tokenizer: Tokenizer) -> None:
    for pair in CORPUS:
        for text in pair:
            ids = tokenizer.encode(clean(text)).ids
            assert tokenizer.decode(ids) == text
            assert tokenizer.token_to_id(UNK) not in ids


@settings(max_examples=200)
@given(text=st.text(alphabet="aeio tnsrl'.,!?éçJ3-", max_size=40))
def test_any_text_of_known_letters_comes_back(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(clean(text)).ids) == clean(text)


def test_unknown_characters_are_unknown(tokenizer: Tokenizer) -> None:
    encoded = tokenizer.encode("the 猫")
    assert encoded.tokens[0] == "▁the"
    assert encoded.tokens[-1] == UNK
    assert tokenizer.decode(encoded.ids).strip() == "the"


# Bytes for what it does not know


@pytest.fixture(scope="module")
def spelling() -> Tokenizer:
    tokenizer = train_tokenizer([text for pair in CORPUS for text in pair], vocab_size=300, byte_fallback=True)
    tokenizer.encode_special_tokens = True
    return tokenizer


@settings(max_examples=300)
@given(text=st.text(alphabet=st.characters(exclude_characters=WORD_START, exclude_categories=[])))
def test_any_text_comes_back_from_bytes(spelling: Tokenizer, text: str) -> None:
    """All of Unicode, but for the sign that stands for a blank."""
    ids = spelling.encode(clean(text)).ids
    assert spelling.decode(ids) == clean(text)
    assert spelling.token_to_id(UNK) not in ids


def test_digits_are_single_tokens_wherever_they_stand(spelling: Tokenizer) -> None:
    assert spelling.encode("I 3,407").tokens == ["▁I", "▁", "3", ",", "4", "0", "7"]
    digits = [token for token in spelling.get_vocab() if any(c.isdigit() for c in token) and token[0] != "<"]
    assert sorted(digits) == list("0123456789")


def test_an_unseen_name_is_spelled_out(spelling: Tokenizer) -> None:
    tokens = spelling.encode("Žižek").tokens
    assert "".join(tokens) == "▁<0xC5><0xBD>i<0xC5><0xBE>ek"
    assert spelling.decode(spelling.encode("Žižek 猫!").ids) == "Žižek 猫!"
    assert word_numbers(tokens) == (0,) * len(tokens)
    assert "<0xC5>" not in spelling.encode("<0xC5>").tokens, "what is typed is text like any other"


def test_bytes_are_added_to_the_vocabulary_size(spelling: Tokenizer) -> None:
    vocab = spelling.get_vocab()
    assert {f"<0x{byte:02X}>" for byte in range(256)} <= vocab.keys()
    assert 256 < spelling.get_vocab_size() <= 300 + 256 + 11
    assert sorted(vocab.values()) == list(range(len(vocab)))
    assert [spelling.id_to_token(i) for i in range(4)] == [PAD, BOS, EOS, UNK]
    assert Tokenizer.from_str(spelling.to_str()).get_vocab() == vocab


# The vocabulary


def test_the_first_ids_have_a_meaning(tokenizer: Tokenizer) -> None:
    assert [tokenizer.id_to_token(i) for i in range(4)] == [PAD, BOS, EOS, UNK] == ["<pad>", "<bos>", "<eos>", "<unk>"]
    assert special_tokens(tokenizer) == SpecialTokens(pad=0, bos=1, eos=2)
    assert token_id(tokenizer, UNK) == 3


def test_vocabulary_size_is_a_bound_and_training_repeats() -> None:
    texts = ["the cat sat on the mat", "the dog sat on the log"] * 2
    small, large = train_tokenizer(texts, 25), train_tokenizer(texts, 500)
    assert small.get_vocab_size() == 25
    assert small.get_vocab_size() < large.get_vocab_size() < 500
    assert train_tokenizer(texts, 500).to_str() == large.to_str()
    # a pair seen once is not worth a token
    assert "▁cat" not in train_tokenizer(["the cat sat", "the dog ran"], 500).get_vocab()


def test_the_tiny_translator_has_this_vocabulary(tokenizer: Tokenizer) -> None:
    assert tokenizer.get_vocab() == Tokenizer.from_file(str(TOKENIZER)).get_vocab()


def test_a_saved_tokenizer_splits_alike(tokenizer: Tokenizer) -> None:
    again = Tokenizer.from_str(tokenizer.to_str())
    for _, french in CORPUS:
        assert again.encode(french).ids == tokenizer.encode(french).ids

"""Cleaning, special tokens, and tokens as people read them."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from viz_core.pretrained.tokenization import UNK, clean, readable, special_tokens, token_id

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


def test_tokens_as_people_read_them() -> None:
    assert [readable(token) for token in ("▁cat", "s", "▁", "<eos>", "'m")] == ["cat", "s", "·", "<eos>", "'m"]

"""The book's pairs: its tokens, its vocabularies, its tensors, number by number."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from recipes.book_pairs import (
    NUM_STEPS,
    NUM_TRAIN,
    NUM_VALIDATION,
    Vocabulary,
    build_vocabulary,
    pad_or_trim,
    prepare,
    tokenize,
)

TEXT = "Go.\tVa !\tCC-BY\nGo on.\tVa !\nGo, Tom!\tVa, Tom !\nTom ran.\tTom a couru.\nnever\tread\nnever\tread"


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Go.", ["go", ".", "<eos>"]),
        ("Va\u202f!", ["va", "!", "<eos>"]),
        ("Ça\xa0va\xa0?", ["ça", "va", "?", "<eos>"]),
        ("He's calm.", ["he's", "calm", ".", "<eos>"]),
        ("Well,  no...", ["well", ",", "no", ".", ".", ".", "<eos>"]),
        ("go .", ["go", ".", "<eos>"]),
        ("", ["<eos>"]),
    ],
)
def test_tokens_are_words_and_signs(text: str, tokens: list[str]) -> None:
    assert tokenize(text) == tokens


@given(st.text(alphabet="aB'é ,.!?\u202f\xa0", max_size=12))
def test_a_blank_comes_before_each_sign_that_has_none(text: str) -> None:
    plain = text.replace("\u202f", " ").replace("\xa0", " ").lower()
    spaced = ""
    for before, sign in zip(" " + plain, plain, strict=False):
        spaced += " " + sign if sign in ",.!?" and before != " " else sign
    assert tokenize(text) == [*spaced.split(), "<eos>"]


def test_sentences_are_cut_or_padded_to_nine_tokens() -> None:
    assert NUM_STEPS == 9
    assert pad_or_trim(["a", "<eos>"]) == ["a", "<eos>", *["<pad>"] * 7]
    assert pad_or_trim([*"abcdefghi", "<eos>"]) == [*"abcdefghi"]  # its end is cut off too, as in the book


def test_a_vocabulary_has_what_was_met_twice() -> None:
    words = build_vocabulary([["b", "a", "c"], ["a", "b", "é"]])
    assert words == Vocabulary(("<unk>", "a", "b"))
    assert len(words) == 3
    assert words.encode(["b", "c", "a"]) == [2, 0, 1]
    assert words.decode([2, 0, 1]) == "b <unk> a"
    assert Vocabulary(("<eos>", "<unk>", "a")).decode([2, 2, 0, 2]) == "a a"  # up to the end


def test_pairs_as_numbers() -> None:
    pairs = prepare(TEXT, num_train=3)  # and one line for validation; those after it are not looked at
    assert pairs.source_words.words == (".", "<eos>", "<pad>", "<unk>", "go", "tom")
    assert pairs.target_words.words == ("!", "<bos>", "<eos>", "<pad>", "<unk>", "tom", "va")
    assert pairs.train.source.tolist() == [
        [4, 0, 1, 2, 2, 2, 2, 2, 2],
        [4, 3, 0, 1, 2, 2, 2, 2, 2],
        [4, 3, 5, 3, 1, 2, 2, 2, 2],  # a comma and an exclamation mark are met once only
    ]
    assert pairs.train.valid_lens.tolist() == [3, 4, 5]
    assert pairs.train.target.tolist()[2] == [1, 6, 4, 5, 0, 2, 3, 3, 3, 3]  # <bos> va <unk> tom ! <eos>
    assert pairs.validation.source.tolist() == [[5, 3, 0, 1, 2, 2, 2, 2, 2]]
    assert pairs.validation.target.tolist() == [[1, 5, 4, 4, 4, 2, 3, 3, 3, 3]]


def test_the_book_reads_641_lines() -> None:
    text = "\n".join(f"Say {n}.\tDis {n}." for n in range(700))
    pairs = prepare(text)
    assert (len(pairs.train.source), len(pairs.validation.source)) == (NUM_TRAIN, NUM_VALIDATION) == (512, 129)
    assert pairs.source_words.words == (".", "<eos>", "<pad>", "<unk>", "say")
    assert torch.equal(pairs.train.valid_lens, torch.full((512,), 4))


def test_too_few_pairs() -> None:
    with pytest.raises(ValueError, match="expected more than 512 sentence pairs, got 2"):
        prepare("Go.\tVa !\nRun!\tCours !")
    with pytest.raises(ValueError, match="expected at least 1 pair to train on, got 0"):
        prepare(TEXT, num_train=0)

"""In how many training sentences a word stood, and which words of a text stood in few."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from viz_core.pretrained import CheckpointError
from viz_core.pretrained.familiarity import COUNTS, FEW, WordCounts, word_counts, words_of

NAME = "transformer-en-fr"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("He\u2019s at Tom's, isn't he?", ["He's", "at", "Tom's", "isn't", "he"]),
        ("At 2:30, in 1984!", ["At", "2", "30", "in", "1984"]),
        ("'Go' - well-known, caf\u00e9_", ["Go", "well", "known", "café"]),
        ("\U0001f600 \u202e", []),
    ],
)
def test_words_without_signs(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def test_rare_words_of_a_text() -> None:
    counts = WordCounts(FEW + 5, {"a": FEW, "cat": 2, "A": 1, "dog": FEW})
    assert counts.rare_words("The cat saw a dog; the cat ran") == (
        ("The", 0),
        ("cat", 2),
        ("saw", 0),
        ("the", 0),
        ("ran", 0),
    )
    assert counts.rare_words("") == ()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"sentences": 1, "words": ["a"]}', '{"sentences": 1, "words": {"x": "a"}}']
)
def test_what_is_no_count_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected counts of words, got"):
        WordCounts.from_json(text)


def test_what_ships_with_the_translator(tmp_path: Path) -> None:
    counts = word_counts(NAME)
    assert counts is not None
    assert counts.sentences == 110_893
    assert counts.rare_words("The cat is sleeping on my bed.") == ()
    assert counts.rare_words("The cat saw sharks") == (("sharks", 0),)
    assert counts is word_counts(NAME), "read once"
    assert word_counts("seq2seq-en-fr") is None
    folder = tmp_path / NAME
    folder.mkdir()
    (folder / COUNTS).write_text("{", encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"words.json of model 'transformer-en-fr' cannot be read"):
        word_counts(NAME, tmp_path)
    shutil.rmtree(folder)
    assert word_counts(NAME, tmp_path) is None

"""Runs of random words, each followed by itself."""

from __future__ import annotations

from pages.model_lab.corpus_text import LENGTH, RUNS, repeated_words
from viz_core.pretrained.samples import held_out

TEXTS = tuple(sample.english for sample in held_out())


def test_each_run_has_different_words_and_comes_twice() -> None:
    found = repeated_words(TEXTS)
    assert len(set(found)) == RUNS
    for text in found:
        words = text.split()
        assert words[:LENGTH] == words[LENGTH:]
        assert len(set(words)) == LENGTH
        assert all(word.isalpha() and word.islower() for word in words)
    assert found == repeated_words(TEXTS), "the same on every visit"
    assert found != repeated_words(TEXTS, seed=1)

"""Translations beside each other: which words only one of them has."""

from __future__ import annotations

from dataclasses import replace

from pages.transformer.heads import words_changed
from viz_core.pretrained import Translation, Translator
from viz_core.pretrained.word_probabilities import WordProbability


def with_words(made: Translation, words: str) -> Translation:
    return replace(made, words=tuple(WordProbability(word, 0.5, (), ()) for word in words.split()))


def test_what_only_one_says_is_changed(translator: Translator) -> None:
    made = translator.translate("Go.", max_new_tokens=2)
    one, other = with_words(made, "le chat dort ."), with_words(made, "le chien dort ici .")
    assert words_changed(one, other) == ({1}, {1, 3})
    assert words_changed(one, one) == (frozenset(), frozenset())
    assert words_changed(with_words(made, ""), other) == (frozenset(), frozenset(range(5)))

"""Translations beside each other: words from pieces, what is marked, and the difference of two scores."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from viz_core.lessons.transformer.heads_off import words_beside
from viz_core.pretrained import Translation, Translator


def said(made: Translation, pieces: str, words: tuple[int, ...], chances: tuple[float, ...]) -> Translation:
    logs = tuple(map(math.log, chances))
    return replace(made, target_tokens=tuple(pieces.split()), target_words=words, log_probabilities=logs)


def test_words_are_put_together_and_what_only_one_says_is_marked(translator: Translator) -> None:
    made = translator.translate("Go.", max_new_tokens=2)
    one = said(made, "le ch at dort .", (0, 1, 1, 2, 3), (0.5, 0.5, 0.5, 0.25, 1.0))
    other = said(made, "le chien dort ici .", (0, 1, 2, 3, 4), (0.5, 0.1, 0.2, 0.3, 0.9))
    first, second = words_beside(one, other)
    assert [(word.text, word.changed) for word in first] == [
        ("le", False),
        ("chat", True),
        ("dort", False),
        (".", False),
    ]
    assert [word.probability for word in first] == pytest.approx([0.5, 0.25, 0.25, 1.0])
    assert [word.text for word in second if word.changed] == ["chien", "ici"]
    assert not any(word.changed for word in words_beside(one, one)[0])

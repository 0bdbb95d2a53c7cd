"""Translations beside each other: words from pieces, what is marked, and the difference of two scores."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from viz_core.lessons.transformer.heads_off import gradient_agreement, held_out_difference, words_beside
from viz_core.pretrained import Translation, Translator
from viz_core.pretrained.bleu import bleu_statistics, corpus_bleu
from viz_core.pretrained.bootstrap import Difference
from viz_core.pretrained.head_importance import HeadImportance, HeadWorth


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


def test_the_difference_is_that_of_two_corpus_scores() -> None:
    wanted = [["le chat dort ici ."], ["il pleut encore ce soir ."], ["je ne sais pas ."]]
    texts = [["le chat dort ici .", "il pleut encore ce soir .", "je sais pas ."], ["le chien dort ici ."] * 3]
    base, other = (bleu_statistics(each, wanted) for each in texts)
    score, (value, low, high) = held_out_difference(base, other)
    assert score == pytest.approx(corpus_bleu(texts[0], wanted))
    assert value == pytest.approx(corpus_bleu(texts[1], wanted) - score)
    assert low <= value <= high < 0


@pytest.mark.parametrize(("order", "expected"), [((1, 2, 3, 4), 1.0), ((4, 3, 2, 1), -1.0), ((2, 1, 4, 3), 0.6)])
def test_agreement_is_that_of_ranks(order: tuple[int, ...], expected: float) -> None:
    heads = [
        HeadWorth("encoder.0.self", i, Difference(-cost, -cost, -cost), None, float(np.exp(gradient)))
        for i, (cost, gradient) in enumerate(zip((1, 2, 3, 4), order, strict=True))
    ]
    assert gradient_agreement(HeadImportance("bleu", 1.0, 4, tuple(heads))) == pytest.approx(expected)

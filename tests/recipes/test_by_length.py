"""As many sentences of every length, their scores, and the sentence to open on, chosen by rule."""

from __future__ import annotations

import json

import pytest

from recipes.by_length import ATTENTION, EDGES, MODELS, PER_BIN, PLAIN, balanced, opening_sentence, scores
from viz_core.pretrained.bleu import corpus_bleu
from viz_core.pretrained.samples import BY_LENGTH

LENGTHS = {"a": 5, "b": 6, "c": 6, "d": 9, "e": 20}


def test_as_many_of_each_length_whatever_their_order() -> None:
    bins = balanced(list(LENGTHS), LENGTHS, (5, 8), 2)
    assert [len(each) for each in bins] == [2, 2]
    assert set(bins[0]) < {"a", "b", "c"}
    assert set(bins[1]) == {"d", "e"}
    assert balanced(list(LENGTHS)[::-1], LENGTHS, (5, 8), 2) == bins
    with pytest.raises(ValueError, match="per_bin: expected at most 2 for 8 to 20 tokens, got 3"):
        balanced(list(LENGTHS), LENGTHS, (5, 8), 3)


def test_the_best_aligned_that_only_attention_gets_right() -> None:
    texts = {"a": "un chat dort ici ce soir", "b": "le chien", "c": "le chien est là ce soir", "d": "faux"}
    references = {name: [text] for name, text in texts.items()} | {"d": ["vrai"]}
    plain = {"a": "une maison", "b": "nous partons", "c": "elles chantent ce soir", "d": "vrai"}
    errors = {"a": (0.3, 0.4), "b": (0.2, 0.4), "c": (0.1, 0.1), "d": (0.0, 0.4), "not of the test split": (0.0, 1.0)}
    assert opening_sentence(texts, plain, references, errors) == "b"  # "c" is aligned no better than by place
    assert opening_sentence(texts, plain | {"b": texts["b"]}, references, errors) == "a"
    with pytest.raises(ValueError, match="expected a sentence that only the model with attention gets right"):
        opening_sentence(texts, texts, references, errors)


def test_scores_are_corpus_bleu_within_their_intervals() -> None:
    references = {"a": ["le chat noir dort sur mon lit"], "b": ["il pleut encore ce matin"]}
    texts = {
        PLAIN: {"a": "le chien noir dort", "b": "il pleut"},
        ATTENTION: {name: each[0] for name, each in references.items()},
    }
    found = scores(texts, ["a", "b"], references)
    assert found["sentences"] == 2
    plain, low, high = found["bleu"][PLAIN]
    assert plain == pytest.approx(
        corpus_bleu([texts[PLAIN]["a"], texts[PLAIN]["b"]], list(references.values())), abs=0.01
    )
    assert low <= plain <= high
    assert found["bleu"][ATTENTION] == [100, 100, 100]
    assert found["difference"][0] == pytest.approx(100 - plain, abs=0.02)


def test_what_was_measured_is_whole() -> None:
    measured = json.loads(BY_LENGTH.read_text(encoding="utf-8"))
    assert [each["from"] for each in measured["bins"]] == list(EDGES)
    assert {each["sentences"] for each in measured["bins"]} == {PER_BIN}
    for each in (*measured["bins"], measured["balanced"]):
        assert set(each["bleu"]) == set(MODELS)
        assert all(low <= value <= high for value, low, high in (*each["bleu"].values(), each["difference"]))

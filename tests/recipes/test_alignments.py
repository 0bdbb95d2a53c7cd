"""What is measured of alignment: words found in tokens, the samples, and the numbers that ship."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from recipes.alignments import (
    AlignedPair,
    aligned_pairs,
    aligned_samples,
    alignment_error_rate,
    measure_alignments,
    word_of_each_token,
)
from viz_core.pretrained import load, load_translator
from viz_core.view.components import group_labels
from viz_core.view.shipped import aligning_head, translation_groups


def test_every_sample_links_words_that_there_are() -> None:
    samples = aligned_samples()
    assert len(samples) == 100 == len({sample.english for sample in samples})
    for sample in samples:
        assert sample.sure
        assert not sample.sure & sample.possible
        for i, j in sample.sure | sample.possible:
            assert i < len(sample.english_spans)
            assert j < len(sample.french_spans)


def test_words_are_cut_as_the_file_says() -> None:
    pair = AlignedPair("He can't, it's Tom's.", "J'ai l'eau, qu'il dit-elle.", frozenset(), frozenset())
    english = [pair.english[start:stop] for start, stop in pair.english_spans]
    french = [pair.french[start:stop] for start, stop in pair.french_spans]
    assert english == ["He", "ca", "n't", ",", "it", "'s", "Tom", "'s", "."]
    assert french == ["J'", "ai", "l'", "eau", ",", "qu'", "il", "dit", "-", "elle", "."]


def test_each_token_is_a_piece_of_a_word() -> None:
    tokenizer = load_translator("transformer-en-fr", "cpu").tokenizer
    for sample in aligned_samples():
        for text, spans in ((sample.english, sample.english_spans), (sample.french, sample.french_spans)):
            words = word_of_each_token(tokenizer.encode(text), spans)
            assert list(words) == sorted(words)
            assert set(words) == set(range(len(spans) + 1))  # each word has a token, the end is one more


def test_what_ships_is_what_is_measured() -> None:
    """And one head aligns the words it writes, another the words it has read: not one for both (Chen 2020)."""
    model = load_translator("transformer-en-fr", "cpu")
    measured, shipped = measure_alignments(model), model.card.training["alignments"]
    assert measured is not None
    assert measured["pairs"] == shipped["pairs"] == 100
    for reading in ("written", "read"):
        for found, expected in zip(measured[reading], shipped[reading], strict=True):
            assert found == pytest.approx(expected, abs=0.01)
    view = aligning_head(translation_groups(model.translate("He is calm."), group_labels("translation")))
    best = min(rate for layer in shipped["written"] for rate in layer)
    assert shipped["written"][view.layer][view.head] == best < shipped["diagonal"]
    assert shipped["read"][view.layer][view.head] > shipped["diagonal"]
    assert measure_alignments(load("seq2seq-en-fr", "cpu")) is None


def test_the_shipped_gru_aligns_and_its_card_says_so() -> None:
    """Trained for 2.9 epochs, its map was worse than none: 68.9% to 44.6% for words paired by their place."""
    model = load_translator("bahdanau-en-fr", "cpu")
    measured, shipped = measure_alignments(model), model.card.training["alignments"]
    assert measured is not None
    assert measured["written"][0][0] == pytest.approx(shipped["written"][0][0], abs=0.01)
    assert shipped["written"][0][0] < shipped["diagonal"]
    assert f"| {shipped['written'][0][0]:.1%} | {shipped['read'][0][0]:.1%} |" in model.card.text
    assert model.card.scores["bleu_greedy"] > 31.1
    assert all(note in model.card.text for note in model.card.training["notes"])


links = st.frozensets(st.tuples(st.integers(0, 3), st.integers(0, 3)))


def test_the_error_rate_by_hand() -> None:
    sure, possible = [{(0, 0), (1, 1)}], [{(2, 1)}]
    assert alignment_error_rate([{(0, 0), (1, 1)}], sure, possible) == 0
    # a possible pair is not wrong: |A & S| = 2, |A & P| = 3, |A| = 3, |S| = 2
    assert alignment_error_rate([{(0, 0), (1, 1), (2, 1)}], sure, possible) == 0
    # one sure pair missed, one pair wrong: 1 - (1 + 1) / (2 + 2)
    assert alignment_error_rate([{(0, 0), (3, 3)}], sure, possible) == 0.5
    assert alignment_error_rate([{(3, 3)}], sure, possible) == 1
    # sentences are counted together, not one by one: 1 - (2 + 2 + 0) / (2 + 2 + 1 + 1)
    two = [[{(0, 0), (1, 1)}, {(0, 1)}], [{(0, 0), (1, 1)}, {(0, 0)}], [set(), set()]]
    assert alignment_error_rate(*two) == pytest.approx(1 / 3)


@given(links, links.filter(bool), links)
def test_between_0_and_1_and_0_for_what_people_drew(found: frozenset, sure: frozenset, possible: frozenset) -> None:
    assert 0 <= alignment_error_rate([found], [sure], [possible]) <= 1
    assert alignment_error_rate([sure], [sure], [possible]) == 0
    assert alignment_error_rate([sure | possible], [sure], [possible]) == 0


def test_the_end_of_a_sentence_has_no_partner() -> None:
    written = torch.tensor([[0.0, 0.8, 0.2], [0.9, 0.1, 0.0], [0.0, 0.0, 1.0]])
    assert aligned_pairs(written, 2) == {(1, 0), (0, 1)}
    assert aligned_pairs(written.roll(1, dims=0), 2) == {(1, 1), (0, 2)}

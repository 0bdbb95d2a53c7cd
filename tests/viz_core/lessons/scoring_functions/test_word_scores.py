"""What the chapter opens on is what the translator itself computes for that sentence."""

from __future__ import annotations

import pytest

from viz_core.lessons.scoring_functions.score_contest import last_layer_input, word_scores
from viz_core.pretrained import load_translator
from viz_core.pretrained.samples import sentences
from viz_core.pretrained.token_vectors import sentence_tokens


def test_the_weights_are_those_of_the_encoders_last_layer() -> None:
    model = load_translator("transformer-en-fr", "cpu")
    text = next(sample.english for sample in sentences() if sample.id == "cat")
    encoder = model.model.encoder
    tokens = sentence_tokens(text, 24, 256, model, ended=True)
    translation = model.translate(text)
    assert tokens.labels == translation.source_tokens
    X = last_layer_input(encoder, tokens.X)
    for head in range(8):
        made = word_scores(encoder.blocks[-1].attention, X, head)
        recorded = translation.trace["encoder.2.self"].weights(head=head)[0]
        for query in range(len(tokens.labels)):
            assert made.weights(query).numpy() == pytest.approx(recorded[query].numpy(), abs=1e-5)


def test_no_end_mark_follows_what_says_nothing() -> None:
    model = load_translator("transformer-en-fr", "cpu")
    assert sentence_tokens(" ", 24, 256, model, ended=True).labels == ()

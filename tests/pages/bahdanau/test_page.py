"""The Bahdanau chapter through AppTest: steps, claims, the opening sentence, and what a link may ask for."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from benchmarks.view_bytes import decode_view
from tests.pages.reading import (
    components,
    printed,
    texts,
)
from tests.visits import Visits
from viz_core.lessons.bahdanau import decoder_steps
from viz_core.pretrained import Translation, Translator, load
from viz_core.pretrained.samples import sentence

OpenPage = Callable[..., AppTest]
SAMPLE = sentence("cat")


@pytest.fixture(scope="module")
def translator() -> Translator:
    return load("bahdanau-en-fr")


@pytest.fixture(scope="module")
def sample(translator: Translator) -> Translation:
    return translator.translate(SAMPLE)


def test_the_sample_is_translated_and_both_models_have_their_cards(visits: Visits) -> None:
    names = ("seq2seq-en-fr", "bahdanau-en-fr")
    shown = texts(visits("bahdanau", **{f"b-card-{name}": "true" for name in names}))
    assert f"## {load('bahdanau-en-fr').translate(SAMPLE).text}" in shown
    for name in names:
        assert f"{load(name).card.scores['bleu_greedy']:.1f} with greedy search" in shown


def test_the_map_names_what_the_plain_model_writes_and_the_book_agrees(visits: Visits) -> None:
    app = visits("bahdanau")
    assert f"*{load('seq2seq-en-fr').translate(SAMPLE).text}*" in texts(app)
    agree = {"(4, 7, 10)", "(4, 7, 16)", "(4, 16)", "0.658"}
    assert {what for what, verdict in printed(app) if verdict == "agrees"} == agree
    assert [what for what, verdict in printed(app) if verdict == "run"] == ["256, 256, 2, 0.2, 0.005"]


def test_the_map_shows_what_words_bring_in_place_of_weights(visits: Visits, translator: Translator) -> None:
    result = translator.translate("Go.")
    steps = decoder_steps(translator, result)
    source, _, valid_lens = translator.teacher_forced(result.source_ids, result.target_ids)
    added = steps.weights * translator.model.encoder(source, valid_lens).outputs[0].detach().norm(dim=-1)
    app = visits("bahdanau", **{"b-text": "Go.", "b-quantity": "contributions"})
    shown = decode_view(components(app, "attention_view")[0].bytes)
    (found,) = [part for name, part in shown.parts.items() if name.startswith("map")]
    np.testing.assert_allclose(found, added / added.sum(dim=-1, keepdim=True), atol=1e-5)
    assert "Additive attention has no output projection" in texts(app).replace("\n", " ")


def test_nonsense_gets_a_sentence_or_a_translation(open_page: OpenPage) -> None:
    app = open_page("bahdanau", **{"open-all": "false"})
    for text in ("   ", "😀😀", "x" * 3000, "<script>alert(1)</script>", "مرحبا"):
        app.text_input(key="b-text").set_value(text).run()
        assert not app.exception
        assert app.text_input(key="b-text").value == text


def test_without_models_one_sentence_says_so(open_page: OpenPage, no_checkpoints: Path) -> None:
    assert not list(no_checkpoints.iterdir())
    app = open_page("bahdanau")
    (error,) = app.error
    assert "bahdanau-en-fr" in error.value.replace("\\", "")

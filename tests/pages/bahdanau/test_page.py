"""The Bahdanau chapter through AppTest: steps, claims, the opening sentence, and what a link may ask for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from benchmarks.view_bytes import decode_view
from pages.bahdanau import figures
from tests.pages.reading import (
    components,
    printed,
    texts,
)
from tests.visits import Visits
from ui.text.words import load_words
from ui.widgets.figure_style import ACCENT, KEYS
from viz_core.lessons.bahdanau import DecoderSteps, decoder_steps
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


def test_next_goes_on_word_by_word_and_round(open_page: OpenPage, sample: Translation) -> None:
    app = open_page("bahdanau")
    app.button(key="b-next").click().run()
    assert app.segmented_control(key="b-step").value == 4
    app.segmented_control(key="b-step").set_value(len(sample.target_tokens)).run()
    app.button(key="b-next").click().run()
    assert app.segmented_control(key="b-step").value == 1


@pytest.mark.parametrize("text", ["", "   ", "😀😀", "x" * 3000, "<script>alert(1)</script>", "مرحبا"])
def test_nonsense_gets_a_sentence_or_a_translation(open_page: OpenPage, text: str) -> None:
    app = open_page("bahdanau")
    app.text_input(key="b-text").set_value(text).run()
    assert not app.exception
    assert app.text_input(key="b-text").value == text


def test_without_models_one_sentence_says_so(open_page: OpenPage, no_checkpoints: Path) -> None:
    assert not list(no_checkpoints.iterdir())
    app = open_page("bahdanau")
    (error,) = app.error
    assert "bahdanau-en-fr" in error.value.replace("\\", "")


@pytest.fixture(scope="module")
def app(open_page: OpenPage) -> AppTest:
    return open_page("bahdanau")


LABELS = load_words("bahdanau", "en").group("figure")
WEIGHTS = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]])
STEPS = DecoderSteps(torch.tensor([[0.5, -1.0], [0.25, 0.0]]), WEIGHTS, torch.zeros(2, 2), torch.eye(2))
SOURCE = ("the", "<b>cat</b>", "<eos>")


@pytest.mark.parametrize(("step", "rows"), [(0, [0]), (1, [0, 1])])
def test_bars_are_the_weights_of_the_step_and_of_the_one_before(step: int, rows: list[int]) -> None:
    figure = figures.weights_figure(STEPS, step, SOURCE, LABELS)
    assert [bar.marker.color == KEYS for bar in figure.data] == [row == step for row in rows]
    for bar, row in zip(figure.data, rows, strict=True):
        np.testing.assert_array_equal(bar.y, WEIGHTS[row].numpy())
    assert list(figure.layout.xaxis.ticktext) == ["the", "&lt;b&gt;cat&lt;/b&gt;", "&lt;eos&gt;"]


def test_the_written_word_stands_out() -> None:
    figure = figures.choice_figure([("chat", 0.75), ("<i>", 0.25)], 0, LABELS)
    assert figure.data[0].marker.color == (ACCENT, "#9aa0a6")
    np.testing.assert_array_equal(figure.data[0].x, np.array([0.75, 0.25], dtype=np.float32))
    assert list(figure.layout.yaxis.ticktext) == ["chat", "&lt;i&gt;"]
    unlikely = figures.choice_figure([("chat", 0.75)], None, LABELS)
    assert unlikely.data[0].marker.color == ("#9aa0a6",)


def test_states_are_shown_on_one_signed_scale() -> None:
    query, context = figures.states_figure(STEPS, 0, LABELS).data
    np.testing.assert_array_equal(query.z, [[0.5, -1.0]])
    np.testing.assert_array_equal(context.z, [[0.0, 0.0]])
    assert {(trace.zmin, trace.zmax) for trace in (query, context)} == {(-1, 1)}


def test_one_line_a_model_by_length_and_by_epoch() -> None:
    bins = [(1, 4, 50.0, 45.0, 56.0), (5, 7, 20.5, 19.5, 21.0)]
    lines = figures.balanced_figure({"plain": bins, "attention": bins}, LABELS).data
    assert [line.name for line in lines] == ["plain", "attention"]
    np.testing.assert_array_equal(lines[0].y, np.array([50.0, 20.5], dtype=np.float32))
    np.testing.assert_array_equal(lines[0].error_y.array, [6.0, 0.5])
    np.testing.assert_array_equal(lines[0].error_y.arrayminus, [5.0, 1.0])
    curve = [
        {"epoch": 1.0, "validation_loss": 2.5, "train_loss": 3.0},
        {"epoch": 1.5, "validation_loss": 2.0, "train_loss": 1.0},
    ]
    (line,) = figures.curves_figure({"plain": curve}, "epoch", "loss").data
    np.testing.assert_array_equal(line.y, [2.5, 2.0])

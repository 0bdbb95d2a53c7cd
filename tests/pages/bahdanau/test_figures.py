"""The numbers in the Bahdanau chapter's pictures are those of the steps and cards they are drawn from."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pages.bahdanau import figures
from ui.text.words import load_words
from ui.widgets.figure_style import ACCENT, KEYS
from viz_core.lessons.bahdanau.decoder_steps import DecoderSteps

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
    (line,) = figures.curves_figure({"plain": curve}, "epoch", "loss", "train_loss").data
    np.testing.assert_array_equal(line.y, [3.0, 1.0])

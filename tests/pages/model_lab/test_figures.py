"""What the model lab draws: words of tokens, fingerprints, bars, and position schemes from a model's own numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pages.model_lab.figures import bias_figure, fingerprint_figure, table_heatmap, wavelengths_figure
from ui.blocks.figures import bars_figure
from ui.text.words import load_words
from viz_core.hub import Token
from viz_core.hub.runs.token_text import token_words
from viz_core.lessons.model_lab.position_measures import bias_by_offset, cosines
from viz_core.positional import sinusoidal_table

LABELS = load_words("model-lab", "en").group("figure")


def test_tokens_join_to_words_and_special_ones_stand_alone() -> None:
    tokens = [
        Token(0, "[CLS]", "[CLS]", special=True),
        Token(1, "un", "·un", starts_word=True),
        Token(2, "kind", "kind"),
        Token(3, "cat", "·cat", starts_word=True),
        Token(4, "[SEP]", "[SEP]", special=True),
        Token(5, "s", "s"),
    ]
    assert token_words(tokens) == (0, 1, 1, 2, 3, 4)
    assert token_words([]) == ()


def test_the_map_of_heads_has_the_first_layer_on_top() -> None:
    figure = fingerprint_figure(np.array([[0.0, 0.5], [0.25, 1.0]], dtype=np.float32), "diagonal", LABELS)
    assert figure.data[0].z[1][1] == 1.0
    assert figure.layout.yaxis.autorange == "reversed"
    assert figure.layout.xaxis.title.text == "head"
    silent = fingerprint_figure(np.zeros((1, 1), dtype=np.float32), "first", LABELS)
    assert silent.data[0].zmax > 0


def test_bars_mark_what_was_chosen_and_obey_no_markup() -> None:
    figure = bars_figure(["·a", "<b>", "·a"], [0.5, 0.3, 0.1], "<b>", "next word", LABELS)
    assert list(figure.data[0].x) == pytest.approx([0.5, 0.3, 0.1])
    assert figure.layout.yaxis.ticktext == ("·a", "&lt;b&gt;", "·a")
    colours = figure.data[0].marker.color
    assert colours[0] == colours[2] != colours[1]


def test_bias_by_offset_takes_each_bucket_of_the_model() -> None:
    values = torch.arange(8.0)[:, None] * torch.tensor([1.0, -1.0])  # bucket b adds b to head 1, -b to head 2
    # Both ways, 8 buckets: 4 a side, of which 0 and 1 are exact; keys after the query start at 4.
    both = bias_by_offset(values, True, 16, 2)
    assert both.shape == (2, 5)
    assert both[0].tolist()[1:4] == [1.0, 0.0, 5.0]
    assert torch.equal(both[1], -both[0])
    back = bias_by_offset(values, False, 16, 3)
    assert back[0].tolist() == [3.0, 2.0, 1.0, 0.0]
    figure = bias_figure(back.numpy(), 3, 1, LABELS)
    assert list(figure.data[-1].x) == [-3, -2, -1, 0]
    assert list(figure.data[-1].y) == [-3.0, -2.0, -1.0, 0.0]


def test_rows_of_a_table_are_compared_without_what_all_share() -> None:
    table = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]) + 7
    alike = cosines(table)
    assert torch.allclose(alike.diagonal(), torch.ones(4))
    assert alike[0, 1] == pytest.approx(-1)
    assert alike[0, 2] == pytest.approx(0, abs=1e-6)


def test_a_table_is_shown_as_it_is_and_a_large_one_in_bytes() -> None:
    small = sinusoidal_table(16, 8)
    heatmap = table_heatmap(small, LABELS)
    assert heatmap.exact is not None
    assert np.array_equal(heatmap.exact.numbers, small.numpy())
    large = table_heatmap(torch.randn(2048, 1024), LABELS)
    assert large.pixels.shape == (512, 1024)
    assert large.exact is None
    assert table_heatmap(torch.zeros(3, 2), LABELS).high > 0


def test_wavelengths_are_two_pi_over_the_frequencies() -> None:
    figure = wavelengths_figure(np.array([1.0, 0.01], dtype=np.float32), 512, LABELS)
    assert list(figure.data[0].x) == pytest.approx([2 * np.pi, 200 * np.pi])
    assert figure.layout.annotations[0].x == pytest.approx(np.log10(512))

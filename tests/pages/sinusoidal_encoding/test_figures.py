"""Figures of the sinusoidal chapter hold the library's numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pages.sinusoidal_encoding import figures
from ui.text.words import load_words
from viz_core.lessons.sinusoidal_encoding import binary_code
from viz_core.positional import angular_frequencies, sinusoidal_table

LABELS = load_words("sinusoidal-encoding", "en").group("figure")
BASE = 10000.0


def table(n: int, d: int) -> torch.Tensor:
    return sinusoidal_table(n, d, BASE, dtype=torch.float64)


@pytest.mark.parametrize(("n", "d"), [(1, 2), (60, 32), (7, 5), (2000, 512)])
def test_the_table_as_bytes_is_the_table_to_8_bits_and_exact_by_its_frequencies(n: int, d: int) -> None:
    P = table(n, d)
    heatmap = figures.table_heatmap(P, BASE, LABELS)
    seen = heatmap.pixels.astype(np.float64) / 255 * 2 - 1
    assert np.abs(seen - P.numpy()).max() <= 1 / 255 + 1e-12
    assert heatmap.exact is not None
    assert heatmap.exact.kind == "sinusoid"
    # What the browser computes for a cell: sin or cos of position times frequency.
    phases = np.arange(n)[:, None] * heatmap.exact.numbers[np.arange(d) // 2]
    assert np.abs(np.where(np.arange(d) % 2, np.cos(phases), np.sin(phases)) - P.numpy()).max() < 1e-12
    assert np.array_equal(heatmap.exact.numbers, angular_frequencies(d, BASE).numpy())


def test_the_kept_figure_holds_the_table() -> None:
    figure = figures.table_figure(table(9, 5), LABELS)
    assert figure.data[0].z.dtype == np.float32
    assert np.array_equal(figure.data[0].z, table(9, 5).float().numpy())


def test_similarity_is_the_product_of_rows_in_colours_that_span_what_occurs() -> None:
    P = table(300, 7)
    heatmap = figures.similarity_heatmap(P, LABELS)
    assert heatmap.pixels.shape == (256, 256)
    assert heatmap.exact is not None
    expected = (P[:256] @ P[:256].T).float().numpy()
    assert np.array_equal(heatmap.exact.numbers, expected)
    assert (heatmap.pixels.min(), heatmap.pixels.max()) == (0, 255)
    assert (heatmap.low, heatmap.high) == pytest.approx((expected.min(), expected.max()))
    assert heatmap.square


def test_the_curve_by_offset_has_the_published_numbers() -> None:
    curve = figures.offset_figure(table(60, 32), LABELS).data[0].y
    published = [15.3136, 13.7301, 11.7774, 10.0589, 10.4709, 7.4392]
    assert curve[[1, 2, 5, 10, 20, 59]].tolist() == pytest.approx(published, abs=5e-5)
    assert curve.dtype == np.float32


def test_curves_are_columns_with_their_names() -> None:
    P = table(60, 32)
    figure = figures.curve_figure(P, {6: "six", 9: "nine"}, LABELS)
    assert [trace.name for trace in figure.data] == ["six", "nine"]
    for trace, column in zip(figure.data, [6, 9], strict=True):
        assert np.array_equal(trace.y, P[:, column].float().numpy())
    assert {trace.mode for trace in figure.data} == {"lines+markers"}
    assert figures.curve_figure(table(2000, 32), {0: "zero"}, LABELS).data[0].mode == "lines"


def test_the_binary_code_stands_beside_columns_of_the_same_positions() -> None:
    P = table(60, 32)
    code, encoding = figures.binary_figure(P, BASE, LABELS).data
    assert np.array_equal(code.z, binary_code(32).numpy())
    assert np.array_equal(encoding.z, P[:32, [0, 2, 4, 8, 10]].float().numpy())


def test_a_speed_the_table_lacks_is_left_blank() -> None:
    figure = figures.binary_figure(table(8, 2), BASE, LABELS)
    _, encoding = figure.data
    assert np.isnan(encoding.z[:, 1:]).all()
    assert not np.isnan(encoding.z[:, 0]).any()
    assert list(figure.layout.xaxis2.ticktext) == ["0", "", ""]

"""The scoring chapter's figures show the library's numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pages.scoring_functions.figures import mask_figure, number_grid, plane_figure, softmax_figure
from pages.scoring_functions.scaling_figures import sharpness_figure, spread_figure
from ui.text.words import load_words
from viz_core.lessons.scoring_functions.mask_variants import MASK_VARIANTS, run_variant
from viz_core.lessons.scoring_functions.scaling import measure_width

LABELS = load_words("scoring-functions", "en").group("figure")
ROW = torch.tensor([0.0, 1.0, 7.0, -3.0])


@pytest.mark.parametrize("variant", MASK_VARIANTS, ids=lambda variant: variant.name)
def test_what_a_variant_returns_at_every_length(variant) -> None:
    runs = [run_variant(variant, ROW, length) for length in range(5)]
    cells = mask_figure(runs, LABELS).data[0]
    for row, run in zip(cells.z, runs, strict=True):
        expected = np.full(4, np.nan) if run.weights is None else run.weights.numpy()
        np.testing.assert_array_equal(row, expected)


def test_bands_are_the_quantiles() -> None:
    widths = [measure_width(d, 4, 256) for d in (1, 16)]
    figure = spread_figure(widths, 16, LABELS)
    bands = [trace for trace in figure.data if trace.fill == "toself"]
    plain_wide = bands[0]
    np.testing.assert_allclose(plain_wide.y[:2], [width.quantiles[4] for width in widths], rtol=1e-6)
    np.testing.assert_allclose(plain_wide.y[2:], [width.quantiles[0] for width in widths[::-1]], rtol=1e-6)
    np.testing.assert_allclose(bands[2].y[1], widths[1].quantiles[4] / 4, rtol=1e-6)
    assert figure.layout.shapes[0].x0 == 16


def test_sharpness_of_every_width() -> None:
    widths = [measure_width(d, 8, 256) for d in (1, 64)]
    figure = sharpness_figure(widths, 8, 64, LABELS)
    plain_entropy, scaled_entropy, _, scaled_largest, plain_band, plain_median, _, scaled_median = figure.data
    np.testing.assert_allclose(plain_entropy.y, [w.plain.entropy for w in widths], rtol=1e-6)
    np.testing.assert_allclose(scaled_entropy.y, [w.scaled.entropy for w in widths], rtol=1e-6)
    np.testing.assert_allclose(scaled_largest.y, [w.scaled.largest for w in widths], rtol=1e-6)
    np.testing.assert_allclose(plain_median.y, [w.plain.median_gradient for w in widths], rtol=1e-6)
    np.testing.assert_allclose(scaled_median.y, [w.scaled.median_gradient for w in widths], rtol=1e-6)
    low, high = plain_band.y[:1:-1], plain_band.y[:2]
    assert (low < plain_median.y).all()
    assert (plain_median.y < high).all()


def test_the_plane_and_the_weights() -> None:
    keys, weights = np.array([[1.0, 1.0], [-2.0, 0.0]]), np.array([0.8, 0.2])
    *lines, points, query = plane_figure(np.array([1.0, 0.5]), keys, weights, LABELS).data
    np.testing.assert_allclose(points.x, [1.0, -2.0])
    assert points.marker.size[0] > points.marker.size[1]
    assert (query.x[0], query.y[0]) == (1.0, 0.5)
    assert len(lines) == 2
    bars = softmax_figure({"gaussian": weights, "dot": weights[::-1]}, LABELS).data
    np.testing.assert_allclose(bars[1].y, [0.2, 0.8], rtol=1e-6)


def test_a_grid_of_numbers_with_masked_cells() -> None:
    values = np.array([[0.25, 0.75, 0.0], [-0.0001, 1.0, np.nan]], dtype=np.float32)
    shown = np.array([[True, True, False], [True, True, True]])
    figure = number_grid(values, ["a", "b"], ["1", "2", "3"], "key", "query", shown=shown)
    cells, masked = figure.data
    assert cells.z.dtype == np.float32
    np.testing.assert_array_equal(np.isnan(cells.z), [[False, False, True], [False, False, True]])
    assert [list(row) for row in cells.text] == [["0.250", "0.750", ""], ["0.000", "1.000", ""]]  # no minus zero
    assert [list(row) for row in masked.text] == [["", "", "0"], ["", "", ""]]  # NaN is not a zero
    assert (cells.zmin, cells.zmax) == (0, 1)
    assert list(figure.layout.yaxis.range) == [1.5, -0.5]  # first row on top
    assert figure.layout.xaxis.title.text == "key"

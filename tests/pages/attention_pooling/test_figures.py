"""The pooling chapter's figures show the library's numbers, gaps included."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pages.attention_pooling.figures import Fit, fit_figure, map_figure, panels_figure, width_figure
from ui.text.words import load_words
from ui.widgets.figure_style import KEYS, QUERIES, VALUES
from viz_core.attention import boxcar, gaussian, nadaraya_watson
from viz_core.attention.kernel_pooling import KERNELS, Kernel, with_width
from viz_core.lessons.attention_pooling.curve_fit import book_curve, learn_width, noisy_points

WORDS = load_words("attention-pooling", "en")
LABELS = WORDS.group("figure") | {name: WORDS(f"option.{name}") for name in KERNELS}
X = torch.linspace(0, 5, 51, dtype=torch.float64)


def fit(kernel: Kernel, name: str = "a") -> Fit:
    x, y = noisy_points(12, 1.0, 1)
    y_hat, weights = nadaraya_watson(x, y, X, kernel)
    return Fit(name, x, y, X, book_curve(X), y_hat, weights)


def named(figure, name: str):
    return next(trace for trace in figure.data if trace.name == LABELS[name])


def test_the_fit_its_gaps_and_one_querys_weights() -> None:
    drawn = fit(with_width(boxcar, 0.1))
    assert drawn.y_hat.isnan().any()
    row = next(i for i in range(len(X)) if drawn.weights[i].any())
    figure = fit_figure(drawn, float(X[row]), float(drawn.y_hat[row]), drawn.weights[row], LABELS)
    curve, truth, values, answer = (named(figure, name) for name in ("fit", "truth", "values", "answer"))
    np.testing.assert_allclose(curve.y, drawn.y_hat.float(), equal_nan=True)
    assert curve.connectgaps is False
    np.testing.assert_allclose(truth.y, book_curve(X).float())
    assert (curve.line.color, values.marker.color) == (QUERIES, VALUES)
    np.testing.assert_allclose(values.marker.size[drawn.weights[row] == 0], 6)
    assert values.marker.size.max() == pytest.approx(20)
    assert answer.y[0] == pytest.approx(float(drawn.y_hat[row]))
    bars = next(trace for trace in figure.data if trace.type == "bar")
    np.testing.assert_allclose(bars.y, drawn.weights[row].float())
    assert bars.marker.color == KEYS
    assert [shape.x0 for shape in figure.layout.shapes] == [float(X[row])] * 2


def test_the_map_has_a_row_for_a_query() -> None:
    drawn = fit(gaussian(0.5))
    heatmap = map_figure(drawn, LABELS).data[0]
    np.testing.assert_allclose(heatmap.z, drawn.weights.float())
    np.testing.assert_allclose(heatmap.y, X.float())
    np.testing.assert_allclose(heatmap.customdata[3], drawn.x_train.float())


def test_panels_share_one_legend() -> None:
    fits = [fit(gaussian(width), f"width {width}") for width in (0.1, 0.2, 0.5, 1.0)]
    figure = panels_figure(fits, fits, LABELS)
    assert [note.text for note in figure.layout.annotations] == [f.name for f in fits]
    assert sum(trace.showlegend is True for trace in figure.data) == 3
    maps = [trace for trace in figure.data if trace.type == "heatmap"]
    for heatmap, expected in zip(maps, fits, strict=True):
        np.testing.assert_allclose(heatmap.z, expected.weights.float())


def test_errors_by_width_and_their_minimum() -> None:
    x, y = noisy_points(12, 1.0, 1)
    search = learn_width(x, y, boxcar, torch.logspace(-1, 1, 9, dtype=torch.float64))
    figure = width_figure(search, torch.arange(9.0), 0.3, LABELS)
    np.testing.assert_allclose(named(figure, "left-out").y, search.errors.float(), equal_nan=True)
    star = named(figure, "best")
    assert (star.x[0], star.y[0]) == pytest.approx((search.best, search.error))
    assert figure.layout.shapes[0].x0 == 0.3

"""The relative projection's figures show the library's numbers."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import pytest
import torch

from pages.relative_projection.matrix_figure import matrix_figure
from pages.relative_projection.residual_figures import fit_figure, lift_zeros, precision_figure, residual_figure
from ui.text.words import load_words
from ui.widgets.figure_style import SIGNED_SCALE
from viz_core.lessons.relative_projection.fitted_projection import fit_errors
from viz_core.lessons.relative_projection.precision import precision_curves
from viz_core.lessons.relative_projection.proof import projection_residual
from viz_core.positional import relative_projection

LABELS = load_words("relative-projection", "en").group("figure")


def ticks(figure: go.Figure) -> dict[str, float]:
    axis = figure.layout.yaxis
    return dict(zip(axis.ticktext, axis.tickvals, strict=True))


def test_a_cut_of_the_matrix_with_its_own_dimensions() -> None:
    M = relative_projection(5, 32).numpy()
    figure = matrix_figure(M[8:24, 8:24], 8, 6, LABELS)
    heatmap = figure.data[0]
    np.testing.assert_allclose(heatmap.z, M[8:24, 8:24], atol=1e-7)
    assert heatmap.z.dtype == np.float32
    assert (heatmap.x[0], heatmap.y[-1]) == (8, 23)
    assert (heatmap.zmin, heatmap.zmax) == (-1, 1)
    assert heatmap.colorscale == go.Heatmap(colorscale=SIGNED_SCALE).colorscale
    frame = figure.layout.shapes[0]
    assert (frame.x0, frame.x1, frame.y0, frame.y1) == (11.5, 13.5, 11.5, 13.5)
    assert figure.layout.yaxis.autorange == "reversed"


def test_residuals_with_exact_zeros_at_the_foot_of_the_axis() -> None:
    residual = projection_residual(5, 8, torch.arange(50), dtype=torch.float32).numpy()
    assert residual[0] == 0  # position 0 is (0, 1): its products are exact
    figure = residual_figure(residual, 1e-6, LABELS)
    points, bound = figure.data
    np.testing.assert_allclose(points.y[residual > 0], residual[residual > 0], rtol=1e-6)
    assert points.y[0] == np.float32(ticks(figure)["0"])
    assert points.customdata[0] == 0  # what the pointer reads
    assert bound.y.tolist() == [np.float32(1e-6)] * 2
    low, high = figure.layout.yaxis.range
    assert low < np.log10(points.y.min())
    assert high > -6


def test_residuals_that_are_all_zero_still_have_an_axis() -> None:
    figure = residual_figure(np.zeros(10), 2e-13, LABELS)
    assert (figure.data[0].y == np.float32(ticks(figure)["0"])).all()


def test_zeros_are_lifted_below_everything_else() -> None:
    lifted, floor = lift_zeros(np.array([0.0, 3e-9, 1.0]))
    assert floor == pytest.approx(1e-10)
    np.testing.assert_allclose(lifted, [1e-10, 3e-9, 1.0], rtol=1e-6)
    assert np.isnan(lift_zeros(np.array([np.nan, 1.0]))[0][0])


def test_fit_errors_and_the_longest_wavelength() -> None:
    fits = [fit_errors(5, 8, reach) for reach in (100, 1000)]
    figure = fit_figure(fits, 6283.0, LABELS)
    for trace, name in zip(figure.data, ("seen", "unseen", "difference"), strict=True):
        assert trace.name == LABELS[name]
        np.testing.assert_allclose(trace.y, [getattr(fit, name) for fit in fits], rtol=1e-6)
        assert trace.x.tolist() == [100, 1000]
    assert figure.layout.shapes[0].x0 == 6283.0


def test_two_curves_for_each_number_type() -> None:
    curves = {
        name: tuple(part.numpy() for part in precision_curves(5, 4, getattr(torch, name)))
        for name in ("float64", "float16")
    }
    figure = precision_figure(curves, LABELS)
    assert [trace.line.dash for trace in figure.data] == ["solid", "dot"] * 2
    assert [trace.name for trace in figure.data if trace.showlegend] == ["float64", "float16"]
    naive, rounded = figure.data[2:]
    np.testing.assert_allclose(naive.y, curves["float16"][2], rtol=1e-6, atol=1e-15)  # zeros are lifted
    np.testing.assert_allclose(rounded.y, curves["float16"][1], rtol=1e-6, atol=1e-15)
    assert np.isnan(naive.y[-1])  # float16 has no position 100,000, and the line ends

"""The relative projection's figures show the library's numbers."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import pytest
import torch

from pages.relative_projection.figures import lift_zeros, matrix_figure, residual_figure
from ui.text.words import load_words
from ui.widgets.figure_style import SIGNED_SCALE
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

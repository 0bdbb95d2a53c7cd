"""The attention-pooling chapter through AppTest: its figures and numbers are the library's, gaps included."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from pages.attention_pooling.figures import Fit, fit_figure, map_figure, panels_figure, width_figure
from tests.pages.reading import (
    badges,
    claim_names,
    figure_names,
    figures,
    texts,
)
from tests.visits import Visits
from ui.text.words import load_words
from ui.widgets.figure_style import KEYS, QUERIES, VALUES
from viz_core.attention import boxcar, gaussian, nadaraya_watson
from viz_core.attention.kernel_pooling import KERNELS, Kernel, with_width
from viz_core.lessons.attention_pooling import book_curve, learn_width, noisy_points

OpenPage = Callable[..., AppTest]
CHAPTER = "attention-pooling"
LEARN = "Learn the width"
NAMES = {
    "gaussian": "Gaussian",
    "boxcar": "boxcar",
    "constant": "constant",
    "triangular": "triangular",
    "epanechnikov": "Epanechnikov",
}


def answer(kernel: str, width: float, query: float, n: int = 40, noise: float = 1.0, seed: int = 3) -> float:
    x, y = noisy_points(n, noise, seed)
    queries = torch.tensor([query], dtype=torch.float64)
    return float(nadaraya_watson(x, y, queries, with_width(KERNELS[kernel], width))[0])


def test_opens_with_numbers_of_the_library(visits: Visits) -> None:
    app = visits(CHAPTER)
    page_text = texts(app)
    assert f"| estimate $hat y$ | {answer('gaussian', 0.5, 2.5):.4f} |" in page_text
    assert f"| true value $f(x)$ | {float(book_curve(torch.tensor([2.5]).double())):.4f} |" in page_text
    assert ":orange[keys] with a weight above 0 | 40 of 40" in page_text
    assert set(figure_names(app)) >= {"fit", "kernels", "map", "widths"}
    assert set(claim_names(app)) >= {"sums", "between", "attention"}
    assert all(badges(app).values())
    assert "The address asks for" not in page_text


def test_every_kernel_answers(open_page: OpenPage) -> None:
    app = open_page(CHAPTER)
    for kernel in (name for name in NAMES if name != "gaussian"):
        app.segmented_control(key="ap-kernel").set_value(kernel).run()
        assert not app.exception
        assert f"| {answer(kernel, 0.5, 2.5):.4f} |" in texts(app)
        assert set(claim_names(app)) >= {"sums", "between"}
        assert "attention" not in claim_names(app), "only the Gaussian is dot-product attention"
        assert all(badges(app).values())
        assert ("so the width has no effect" in texts(app)) == (kernel == "constant")


def test_the_data_are_the_readers(open_page: OpenPage) -> None:
    app = open_page(CHAPTER)
    app.slider(key="ap-n").set_value(100)
    app.slider(key="ap-noise").set_value(0.0)
    app.number_input(key="ap-seed").set_value(5).run()
    assert f"| {answer('gaussian', 0.5, 2.5, 100, 0.0, 5):.4f} |" in texts(app)
    assert "40 of 40" not in texts(app)


def test_a_width_of_zero_is_a_sentence(open_page: OpenPage) -> None:
    app = open_page(CHAPTER, **{"ap-width": "0"})
    assert "A kernel of width 0 divides by zero." in app.warning[0].value
    assert not figures(app)
    app.slider(key="ap-width").set_value(0.3).run()
    assert not app.warning
    assert "fit" in figure_names(app)


def test_a_query_that_reaches_no_key_is_a_gap_with_a_note(visits: Visits) -> None:
    x, _ = noisy_points(40, 1.0, 3)
    steps = torch.arange(0, 5.01, 0.05, dtype=torch.float64)
    lonely = max(steps.tolist(), key=lambda q: float((x - q).abs().min()))
    app = visits(CHAPTER, **{"ap-kernel": "boxcar", "ap-width": "0.05", "ap-query": f"{lonely:.2f}"})
    page_text = texts(app)
    assert "none: 0/0" in page_text
    assert "0 of 40" in page_text
    assert re.search(r"\d+ of 251 queries, between", page_text)
    assert all(badges(app).values())
    assert "estimate at the query" not in [trace.get("name") for trace in figures(app)[0]["data"]]


@pytest.mark.parametrize("kernel", ["gaussian", "boxcar"])
def test_the_learned_width_is_the_librarys_and_can_be_taken(open_page: OpenPage, kernel: str) -> None:
    app = open_page(CHAPTER, **{"ap-section": LEARN, "ap-kernel": NAMES[kernel]})
    x, y = noisy_points(40, 1.0, 3)
    search = learn_width(x, y, KERNELS[kernel], torch.logspace(-1.7, 1, 55, dtype=torch.float64))
    assert f"width **{search.best:.3f}**, error {search.error:.4f}" in texts(app)
    assert ("some point has no other point within reach" in texts(app)) == (kernel == "boxcar")
    app.button(key="ap-take").click().run()
    assert not app.exception
    assert app.slider(key="ap-width").value == pytest.approx(round(search.best, 2))
    assert f"| {answer(kernel, round(search.best, 2), 2.5):.4f} |" in texts(app)


def test_the_exercises_answer_is_true() -> None:
    x, y = noisy_points(40, 1.0, 3)
    between = (x[10] + x[11]) / 2 + torch.tensor([-0.01, 0.01], dtype=torch.float64)
    y_hat, _ = nadaraya_watson(x, y, between, with_width(KERNELS["gaussian"], 0.001))
    torch.testing.assert_close(y_hat, y[10:12])


def test_the_plane_counts_its_points_and_recommends_no_widths(visits: Visits) -> None:
    """Wide across and small up, as the clouds are, does worse: 38 of 42."""
    page_text = texts(visits(CHAPTER))
    assert "**40 of 42** points (95%) get their own label" in page_text
    assert "wide and flat" not in page_text
    assert "**38 of 42**" in texts(visits(CHAPTER, **{"ap-width-x": "1.0", "ap-width-y": "0.3"}))


def test_a_width_unlike_the_other_turns_the_badge_of_a_round_kernel(visits: Visits) -> None:
    """Broken by the chapter's own sliders, beside which the page says why."""
    app = visits("attention-pooling", **{"ap-section": "In the plane", "ap-width-x": "1.5"})
    assert [claim for claim, holds in badges(app).items() if not holds] == ["rotating both by 30° changes no weight"]
    assert "directions differ, so a rotation changes the weights" in texts(app)


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

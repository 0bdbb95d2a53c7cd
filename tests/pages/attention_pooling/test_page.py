"""The attention-pooling chapter through AppTest: its figures and numbers are the library's, gaps included."""

import re
from collections.abc import Callable

import torch
from streamlit.testing.v1 import AppTest

from tests.pages.reading import badges, claim_names, figure_names, figures, texts
from tests.visits import Visits
from viz_core.attention import nadaraya_watson
from viz_core.attention.kernel_pooling import KERNELS, with_width
from viz_core.lessons.attention_pooling import book_curve, noisy_points

OpenPage = Callable[..., AppTest]
CHAPTER = "attention-pooling"


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


def test_every_kernel_answers(open_page: OpenPage) -> None:
    app = open_page(CHAPTER)
    for kernel in ("boxcar", "constant", "triangular", "epanechnikov"):
        app.segmented_control(key="ap-kernel").set_value(kernel).run()
        assert f"| {answer(kernel, 0.5, 2.5):.4f} |" in texts(app)
        assert "attention" not in claim_names(app), "only the Gaussian is dot-product attention"
        assert all(badges(app).values())
        assert ("so the width has no effect" in texts(app)) == (kernel == "constant")


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

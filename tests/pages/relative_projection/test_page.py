"""The chapter on the relative projection through AppTest: its figures and numbers are the library's."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from pages.relative_projection.figures import arc, shown_pairs
from tests.pages.reading import claim_names, marks, one_line
from tests.visits import Visits
from ui.text.numbers import localised
from viz_core.lessons.relative_projection import projection_residual
from viz_core.positional import angular_frequencies, sinusoidal_rows

OpenPage = Callable[..., AppTest]
CHAPTER = "relative-projection"


def badge(app: AppTest, words: str) -> tuple[bool, str]:
    return next(value for claim, value in marks(app).items() if words in claim)


def pair(position: int, j: int, d: int) -> str:
    sine, cosine = sinusoidal_rows(torch.tensor([position]), d, dtype=torch.float64)[0, 2 * j : 2 * j + 2].tolist()
    return f"({sine:.4f}, {cosine:.4f})"


def test_opens_with_numbers_of_the_library(visits: Visits) -> None:
    app = visits(CHAPTER)
    assert f"| {pair(3, 3, 32)} |" in one_line(app)
    assert f"| {pair(8, 3, 32)} |" in one_line(app)
    assert f"| {2 * math.pi / float(angular_frequencies(32)[3]):,.2f} positions |" in one_line(app)
    residual = float(projection_residual(5, 32, torch.arange(1000)).max())
    assert badge(app, "for all 1,000 positions") == (True, localised(f"{residual:.2g}", "en"))
    assert badge(app, "is the transpose of") == (True, "0")
    lines = {"proof-product", "proof-written", "proof-addition", "proof-result"}
    assert set(claim_names(app)) >= lines | {"moves", "constant", "compose", "transpose"}
    assert all(holds for holds, _ in marks(app).values())


def test_a_narrower_encoding_says_that_the_pair_is_gone(open_page: OpenPage) -> None:
    app = open_page(CHAPTER, **{"rp-pair": "12"})
    app.select_slider(key="rp-width").set_value(8).run()
    assert app.slider(key="rp-pair").value == 3
    assert "The address asks for Pair j = 12, which cannot be shown here" in one_line(app)


@pytest.mark.parametrize("turn", [0.0, 0.3, -2.0, 6.0, 20.0, -100.0])
def test_an_arc_runs_from_one_hand_to_the_other(turn: float) -> None:
    points = arc(np.array([math.sin(0.7), math.cos(0.7)]), turn)
    radius = np.linalg.norm(points, axis=1)
    expected = [math.sin(0.7 + turn), math.cos(0.7 + turn)]
    np.testing.assert_allclose(points[0] / radius[0], [math.sin(0.7), math.cos(0.7)], atol=1e-6)
    np.testing.assert_allclose(points[-1] / radius[-1], expected, atol=1e-5)
    assert radius.max() < 1
    assert (np.diff(radius) > -1e-6).all()


def test_at_most_36_pairs_with_the_fastest_the_slowest_and_the_chosen() -> None:
    assert shown_pairs(16, 3) == list(range(16))
    for chosen in (0, 1, 100, 254, 255):
        shown = shown_pairs(256, chosen)
        assert len(set(shown)) == 36
        assert shown == sorted(shown)
        assert chosen in shown
        assert shown[0] <= 1
        assert shown[-1] >= 254

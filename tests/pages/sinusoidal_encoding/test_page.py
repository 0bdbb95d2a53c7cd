"""The chapter on sinusoids through AppTest: its figures and numbers are the library's."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from pages.sinusoidal_encoding import figures
from tests.pages.reading import claim_names, claims, heatmap, texts
from tests.pages.reading import figures as drawn_figures
from tests.visits import Visits
from ui.text.numbers import localised
from ui.text.words import load_words
from viz_core.lessons.sinusoidal_encoding import offset_error, similarity_by_offset
from viz_core.positional import angular_frequencies, sinusoidal_table

CHAPTER = "sinusoidal-encoding"
OpenPage = Callable[..., AppTest]


def curves(app: AppTest) -> dict[str, np.ndarray]:
    """The traces of the first plotly figure by name."""
    traces = drawn_figures(app)[0]["data"]
    return {trace.get("name", ""): trace["y"] for trace in traces}


def as_bytes(table: torch.Tensor) -> np.ndarray:
    return ((table.double() + 1) * 127.5).round().numpy().astype(np.uint8)


def test_it_opens_on_the_books_table(visits: Visits) -> None:
    app = visits(CHAPTER)
    header, pixels = heatmap(app)
    P = sinusoidal_table(60, 32, dtype=torch.float64)
    assert np.array_equal(pixels, as_bytes(P))
    assert header["exact"]["kind"] == "sinusoid"
    found = claims(app)
    assert claim_names(app)[:4] == ["norm", "wavelength", "offset", "distinct"]
    assert "35,332.95" in found[1]
    assert localised(f"{offset_error(P):.2g}", "en") in found[2]
    assert np.array_equal(curves(app)["column 6, wavelength 35.33"], P[:, 6].float().numpy())


def test_each_control_moves_the_table(open_page: OpenPage) -> None:
    app = open_page(CHAPTER)
    size = {"n": 60, "d": 32, "base": 10_000}
    for name, value in (("d", 9), ("n", 2000), ("base", 100)):
        widget = app.number_input if name == "base" else app.slider
        widget(key=f"se-{name}").set_value(value).run()
        size[name] = value
        P = sinusoidal_table(size["n"], size["d"], size["base"], dtype=torch.float64)
        assert np.array_equal(heatmap(app)[1], as_bytes(P))
        assert all("material/check" in claim for claim in claims(app))


def test_similarity_has_the_published_numbers(visits: Visits) -> None:
    app = visits(CHAPTER, **{"open-all": "false", "se-section": "Similarity"})
    curve = next(iter(curves(app).values()))
    assert curve[[1, 2, 5, 10, 20, 59]] == pytest.approx(
        [15.3136, 13.7301, 11.7774, 10.0589, 10.4709, 7.4392], abs=5e-5
    )
    similarity = similarity_by_offset(sinusoidal_table(60, 32, dtype=torch.float64))
    rises = sum(similarity[k] > similarity[k - 1] for k in range(1, 60))
    assert f"rises at {rises} of 59 steps" in texts(app)
    header, pixels = heatmap(app, 1)
    assert pixels.shape == (60, 60)
    assert header["high"] == pytest.approx(16)


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

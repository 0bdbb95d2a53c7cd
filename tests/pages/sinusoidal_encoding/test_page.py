"""The sinusoidal chapter through AppTest: each control moves its numbers, no link or input breaks it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from tests.pages.reading import (
    charts,
    claim_names,
    claims,
    components,
    drawn,
    figures,
    finding,
    heatmap,
    number,
    one_line,
    stands,
    texts,
)
from tests.visits import Visits
from ui.text.numbers import localised
from viz_core.lessons.sinusoidal_encoding.properties import nearest_rows, offset_error, similarity_by_offset
from viz_core.positional import sinusoidal_table
from viz_core.view.components import unframe

CHAPTER = "sinusoidal-encoding"
OpenPage = Callable[..., AppTest]


def curves(app: AppTest) -> dict[str, np.ndarray]:
    """The traces of the first plotly figure by name."""
    traces = figures(app)[0]["data"]
    return {trace.get("name", ""): trace["y"] for trace in traces}


def as_bytes(table: torch.Tensor) -> np.ndarray:
    return ((table.double() + 1) * 127.5).round().numpy().astype(np.uint8)


def test_it_opens_on_the_books_table(visits: Visits) -> None:
    app = visits(CHAPTER)
    header, pixels = heatmap(app)
    P = sinusoidal_table(60, 32, dtype=torch.float64)
    assert np.array_equal(pixels, as_bytes(P))
    assert header["exact"]["kind"] == "sinusoid"
    assert "60 positions in rows, 32 dimensions in columns" in header["words"]["alt"]
    found = claims(app)
    assert claim_names(app)[:4] == ["norm", "wavelength", "offset", "distinct"]
    assert all("material/check" in claim for claim in found)
    assert "d/2 = 16" in found[0]
    assert "35,332.95" in found[1]
    assert localised(f"{offset_error(P):.2g}", "en") in found[2]
    assert localised(f"{nearest_rows(P).distance:.2g}", "en") in found[3]
    drawn = curves(app)
    assert [name.split(",")[0] for name in drawn] == [f"column {c}" for c in (6, 7, 8, 9)]
    assert np.array_equal(drawn["column 6, wavelength 35.33"], P[:, 6].float().numpy())


@pytest.mark.parametrize(("name", "value"), [("d", 9), ("d", 512), ("n", 1), ("n", 2), ("n", 2000), ("base", 100)])
def test_each_control_moves_the_table(open_page: OpenPage, name: str, value: int) -> None:
    app = open_page(CHAPTER)
    widget = app.number_input if name == "base" else app.slider
    widget(key=f"se-{name}").set_value(value).run()
    assert not app.exception
    size = {"n": 60, "d": 32, "base": 10_000} | {name: value}
    P = sinusoidal_table(size["n"], size["d"], size["base"], dtype=torch.float64)
    assert np.array_equal(heatmap(app)[1], as_bytes(P))
    assert all("material/check" in claim for claim in claims(app))


def test_the_widest_and_longest_table_has_its_longest_wavelength(visits: Visits) -> None:
    app = visits(CHAPTER, **{"se-d": "512", "se-n": "2000"})
    assert "60,611.48" in claims(app)[1]
    assert "from 64 positions" in claims(app)[2]
    data = components(app, "heatmap")[0].bytes
    assert len(data) < 1_100_000


def test_an_odd_width_states_what_holds(visits: Visits) -> None:
    app = visits(CHAPTER, **{"se-d": "33"})
    assert "squared length 16 + sin²" in claims(app)[0]
    assert "the other 32 columns" in texts(app)


def test_one_position_has_one_claim_and_says_why(visits: Visits) -> None:
    app = visits(CHAPTER, **{"se-n": "1"})
    assert claim_names(app) == ["norm"]
    assert "other checks need n of 2 or more" in texts(app)


def test_columns_can_be_chosen_and_outlive_a_narrow_table(open_page: OpenPage) -> None:
    app = open_page(CHAPTER)
    app.multiselect(key="se-columns").set_value([0, 31]).run()
    P = sinusoidal_table(60, 32)
    drawn = curves(app)
    assert np.array_equal(drawn["column 31, wavelength 35,332.95"], P[:, 31].numpy())
    app.slider(key="se-d").set_value(4).run()
    assert list(curves(app)) == ["column 0, wavelength 6.28"]
    assert "Not drawn: 31." in texts(app)
    app.slider(key="se-d").set_value(32).run()
    assert set(curves(app)) == {"column 0, wavelength 6.28", "column 31, wavelength 35,332.95"}
    app.multiselect(key="se-columns").set_value([]).run()
    assert "Choose up to" in texts(app)


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


def test_a_long_table_says_that_the_map_shows_its_beginning(visits: Visits) -> None:
    app = visits(CHAPTER, **{"open-all": "false", "se-section": "Similarity", "se-n": "2000"})
    assert "first 256 of 2,000 positions" in texts(app)
    assert len(next(iter(curves(app).values()))) == 2000


def test_the_binary_code_says_where_the_table_is_too_slow(visits: Visits) -> None:
    assert "no column has that speed" not in texts(
        visits(CHAPTER, **{"open-all": "false", "se-section": "Binary code"})
    )
    assert "no column has that speed" in texts(
        visits(CHAPTER, **{"open-all": "false", "se-section": "Binary code", "se-d": "2"})
    )


def test_the_exercise_reveals_numbers_that_are_true(open_page: OpenPage) -> None:
    app = open_page(CHAPTER)
    assert "10.4709" not in texts(app)
    app.radio(key="se-guess-similar").set_value("Position 20").run()
    similarity = similarity_by_offset(sinusoidal_table(60, 32, dtype=torch.float64))
    assert f"Similarity is {similarity[20]:.4f} at 20 and {similarity[10]:.4f} at 10." in texts(app)
    pair = sinusoidal_table(21, 32, dtype=torch.float64)[[10, 20], 5]  # the cosine of pair 2
    printed = [f"{value:+.3f}".replace("-", "−") for value in pair.tolist()]
    assert f"its cosine is {printed[0]} at 10 and {printed[1]} at 20" in texts(app)


def test_the_code_is_sent_once_a_reader_opens_it(visits: Visits) -> None:
    assert not visits("sinusoidal-encoding").code
    sources = [block.value for block in visits("sinusoidal-encoding", **{"se-code": "true"}).code]
    assert any(source.startswith("def sinusoidal_table(") for source in sources)


TABLES = [  # n, d, base
    (60, 32, 10_000),
    (2, 2, 1),
    (3, 5, 2),
    (2000, 3, 10_000),
    (40, 27, 10_000),
    (300, 512, 1_000_000),
]


def opened(open_page: OpenPage, section: str, n: int, d: int, base: int) -> AppTest:
    params = {"open-all": "false", "se-section": section, "se-n": str(n), "se-d": str(d), "se-base": str(base)}
    app = open_page("sinusoidal-encoding", **params)
    stands(app)
    return app


def exact_values(app: AppTest, place: int) -> np.ndarray:
    """What a heatmap reads out under the pointer."""
    data = components(app, "heatmap")[place].bytes
    header, start = unframe(data)
    size = header["rows"] * header["columns"]
    return np.frombuffer(data, np.float32, size, start + header["exact"]["offset"]).reshape(header["rows"], -1)


@pytest.mark.parametrize(("n", "d", "base"), TABLES)
def test_of_the_table_and_the_binary_code(visits: Visits, n: int, d: int, base: int) -> None:
    app = opened(visits, "Binary code", n, d, base)
    _, (_, columns) = charts(app, "code")[0]
    gaps = np.isnan(columns["z"]).any()
    assert gaps == ("no column has that speed" in one_line(app))
    assert number(app, "the columns on the right change by at most") == pytest.approx(
        np.nanmax(np.abs(np.diff(columns["z"], axis=0))), abs=6e-3
    )


@pytest.mark.parametrize(("n", "d", "base"), TABLES)
def test_of_similarity(visits: Visits, n: int, d: int, base: int) -> None:
    app = opened(visits, "Similarity", n, d, base)
    values, (header, pixels) = exact_values(app, 1), heatmap(app, 1)
    assert (pixels.min(), pixels.max()) == (0, 255), "no part of the colour scale is for values that do not occur"
    assert header["high"] == pytest.approx(values.diagonal().max(), rel=1e-6)
    striped = all(np.ptp(values.diagonal(k)) < 1e-5 for k in range(len(values)))
    assert finding(app, "has one value", "are not constant") == striped == (d % 2 == 0)
    rises = int((np.diff(drawn(app, "offsets")[0]["y"]) > 0).sum())
    if finding(app, "does not measure distance", "the curve falls at every step"):
        assert number(app, "it rises at") == rises > 0
    else:
        assert rises == 0


def test_with_an_odd_width_the_badge_names_the_columns_it_measures(visits: Visits) -> None:
    """Over whole rows, of one offset, similarity differs by 1: the badge is about the two columns that are a pair."""
    app = opened(visits, "Similarity", 2000, 3, 10_000)
    assert "in the 2 paired columns similarity depends only on the offset" in one_line(app)
    assert number(app, "in whole rows it differs by up to") == pytest.approx(1.0, abs=0.01)
    assert "bit, the lowest first" in str(figures(opened(visits, "Binary code", 8, 4, 100))[0]["layout"])

"""What the sinusoidal chapter says of its pictures, held against what was drawn, for tables of every kind."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.reading import charts, components, drawn, figures, finding, heatmap, number, one_line, stands
from tests.visits import Visits
from viz_core.view.components import unframe

OpenPage = Callable[..., AppTest]
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

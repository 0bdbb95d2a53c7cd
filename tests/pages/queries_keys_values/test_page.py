"""The chapter on queries, keys and values: its answers are the library's, and weights in the plane."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from pages.queries_keys_values.figures import convex_hull, weights_figure
from pages.queries_keys_values.weights_plane import plane_figure, read_number
from tests.pages.reading import (
    badges,
    claim_names,
    drawn,
    figure_names,
    figures,
    texts,
)
from tests.visits import Visits
from ui.text.words import load_words
from ui.widgets.figure_style import KEYS, QUERIES, VALUES
from viz_core.lessons.queries_keys_values import BOOK_DATABASE, CASES, soft_lookup

OpenPage = Callable[..., AppTest]
CHAPTER = "queries-keys-values"
LOOKUP = {"weights", "diagram", "hard", "identities"}
NAMES = [list(pair) for pair in BOOK_DATABASE]
BOOK_KEYS = [key for key, _ in BOOK_DATABASE]


def rows(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def test_opens_with_the_books_answers(visits: Visits) -> None:
    app = visits(CHAPTER)
    page_text = texts(app)
    assert ":orange[Li] → :green[**Mu**]" in page_text
    assert ":orange[Lipton] → :green[**Zachary**] · edits: 0" in page_text
    assert set(claim_names(app)) >= {"sums", "identity", "average", "cone", "hull", "copies"}
    assert all(badges(app).values())
    assert set(figure_names(app)) >= LOOKUP | {"plane"}
    assert "The address asks for" not in page_text
    assert app.dataframe[0].value.values.tolist() == NAMES


def test_any_query_has_its_weights_at_any_temperature_and_its_names_in_reach(open_page: OpenPage) -> None:
    app = open_page(CHAPTER)
    for query in ("Lipten", "Zhang", "ß*_[x](y)$"):
        app.text_input(key="qkv-query").set_value(query).run()
        assert not app.exception
        weights = soft_lookup([query], BOOK_KEYS, 0.2)[0]
        assert figures(app)[0]["data"][0]["text"] == [f"{weight:.3f}" for weight in weights.tolist()]
        if query not in BOOK_KEYS:
            assert f"No key is :blue[{query}]." in texts(app)
    app.text_input(key="qkv-query").set_value("Li")
    for temperature in (0.01, 100.0):
        app.select_slider(key="qkv-temperature").set_value(temperature).run()
        expected = soft_lookup(["Li"], BOOK_KEYS, temperature)[0]
        np.testing.assert_allclose(drawn(app, "weights")[0]["x"], expected, atol=1e-6)
        assert all(badges(app).values())
    app.slider(key="qkv-edits").set_value(2)
    app.segmented_control(key="qkv-compare").set_value("whole").run()
    assert ":orange[Hu] → :green[**Rachel**] · edits: 2" in texts(app)
    assert "**Zachary**] · edits" not in texts(app)
    app.text_input(key="qkv-query").set_value("Wittgenstein").run()
    assert "No key is within 2 edits." in texts(app)


def test_a_key_that_stands_twice(visits: Visits) -> None:
    app = visits(CHAPTER, **{"qkv-names": rows([*NAMES, ["Li", "Fei-Fei"]])})
    page_text = texts(app)
    assert "The key Li is in the table 2 times." in page_text
    assert ":green[**Mu**]" in page_text
    assert ":green[**Fei-Fei**]" in page_text
    assert "2 keys match: the answer is ambiguous." in page_text
    assert badges(app)["at T = 0.01 every key gives itself all the weight"] is False


def test_rows_that_cannot_be_queries_are_named_and_kept(visits: Visits) -> None:
    table = [*NAMES, ["", "Nobody"], [" ", "Blank"], ["Z" * 61, "Long"], ["Noname", ""]]
    app = visits(CHAPTER, **{"qkv-names": rows(table), "qkv-query": "Noname"})
    page_text = texts(app)
    assert "The value Nobody has no key" in page_text
    assert "The value Blank has no key" in page_text
    assert "has 61 letters; the limit is 60" in page_text
    assert ":orange[Noname] → :green[**(nothing)**]" in page_text
    assert app.dataframe[0].value.values.tolist() == table  # nothing is lost


@pytest.mark.parametrize("table", [[], [["", "Nobody"]]])
def test_a_table_without_a_key(visits: Visits, table: list[list[str]]) -> None:
    app = visits(CHAPTER, **{"qkv-names": rows(table)})
    assert "The table has no key yet" in texts(app)
    assert "plane" in figure_names(app)
    assert not LOOKUP & set(figure_names(app))
    assert set(badges(app)) == {
        "no weight is negative: the output is in the cone of the values",
        "the weights are non-negative and sum to 1: the output is in the convex hull of the values",
        "with the identity matrix as values, the output equals the weights",
    }


@pytest.mark.parametrize(
    ("case", "used", "output", "met"),
    [
        ("any", "−0.500, 0.500, 1.000", "(0.500, 1.500)", "any"),
        ("non-negative", "0.000, 0.500, 1.000", "(1.000, 1.500)", "any, non-negative"),
        ("convex", "0.000, 0.333, 0.667", "(0.667, 1.000)", "any, non-negative, convex"),
        ("one-hot", "0.000, 0.000, 1.000", "(1.000, 1.000)", "any, non-negative, convex, one-hot"),
        ("uniform", "0.333, 0.333, 0.333", "(0.667, 0.667)", "any, non-negative, convex, uniform"),
    ],
)
def test_what_each_case_makes_of_the_same_weights(visits: Visits, case: str, used: str, output: str, met: str) -> None:
    table = [["1", "0", "-1/2"], ["0", "1", "0,5"], ["1", "1", "1"]]
    app = visits(CHAPTER, **{"qkv-values": rows(table), "qkv-case": case})
    page_text = texts(app)
    assert f"| weights used | {used} |" in page_text
    assert f"| output | {output} |" in page_text
    assert f"| these weights are | {met} |" in page_text
    assert all(badges(app).values())
    by_case = {"non-negative": {"cone"}, "convex": {"cone", "hull"}}
    by_case |= {"one-hot": {"cone", "hull", "one-hot"}, "uniform": {"cone", "hull", "mean"}}
    assert set(claim_names(app)) & {"cone", "hull", "one-hot", "mean"} == by_case.get(case, set())


def test_cells_that_are_no_numbers_are_named_and_kept(visits: Visits) -> None:
    table = [["1", "zwei", "0.5"], ["", "1", "1e9"]]
    app = visits(CHAPTER, **{"qkv-values": rows(table)})
    page_text = texts(app)
    assert "The y of v1 is “zwei”" in page_text
    assert "The x of v2 is blank" in page_text
    assert "The weight of v2 is “1e9”" in page_text
    assert app.query_params["qkv-values"] == json.dumps(table, separators=(",", ":"))
    assert set(figure_names(app)) >= LOOKUP, "the lookup goes on"
    assert "plane" not in figure_names(app)


def test_convex_weights_of_nothing(open_page: OpenPage) -> None:
    app = open_page(CHAPTER, **{"qkv-values": rows([["1", "2", "0"], ["2", "1", "-1"]])})
    assert "No weight is positive" in texts(app)
    app.segmented_control(key="qkv-case").set_value("uniform").run()
    assert "| output | (1.500, 1.500) |" in texts(app)


def plane(*rows: tuple[float, float]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def test_a_square_with_a_point_inside_and_one_on_its_edge() -> None:
    hull = convex_hull(plane((0, 0), (2, 0), (2, 2), (0, 2), (1, 1), (1, 0)))
    assert hull.tolist() == [[0, 0], [2, 0], [2, 2], [0, 2]]


@pytest.mark.parametrize(
    ("given_points", "corners"),
    [
        ([(1, 2)], [[1, 2]]),
        ([(1, 2), (1, 2)], [[1, 2]]),
        ([(0, 0), (1, 1), (3, 3)], [[0, 0], [3, 3]]),
    ],
)
def test_hulls_without_an_inside(given_points: list[tuple[float, float]], corners: list[list[float]]) -> None:
    assert convex_hull(plane(*given_points)).tolist() == corners


LABELS = load_words("queries-keys-values", "en").group("figure")
POINTS = np.array([[0.0, 2.0], [2.0, 2.0], [2.0, 0.0]])
WEIGHTS = np.array([0.5, 0.25, 0.25])


def traces(points: np.ndarray, weights: np.ndarray, case: str) -> dict:
    return {trace.name: trace for trace in plane_figure(points, weights, case, LABELS).data}


@pytest.mark.parametrize("case", CASES)
def test_the_output_is_the_last_of_the_steps(case: str) -> None:
    drawn = traces(POINTS, WEIGHTS, case)
    output, steps = drawn[LABELS["output"]], drawn[LABELS["steps"]]
    assert (output.x[0], output.y[0]) == (1.0, 1.5)
    assert list(zip(steps.x.tolist(), steps.y.tolist(), strict=True)) == [(0, 0), (0, 1), (0.5, 1.5), (1, 1.5)]
    assert output.marker.color == QUERIES
    assert drawn[LABELS["values"]].marker.color == VALUES
    assert (LABELS.get(case, "") in drawn) == (case in CASES[2:])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.25", 0.25),
        (" 3 ", 3),
        ("0,25", 0.25),
        ("−1", -1),
        ("1/4", 0.25),
        ("-1/4", -0.25),
        ("1e2", 100),
        ("1e7", None),
        ("abc", None),
        ("", None),
        ("1/0", None),
        ("1/2/3", None),
        ("nan", None),
        ("inf", None),
        ("inf/inf", None),
    ],
)
def test_numbers_as_they_are_typed(text: str, value: float | None) -> None:
    assert read_number(text, 1e6) == value


def test_a_bar_for_every_key_even_where_keys_are_alike() -> None:
    weights = soft_lookup(["Li"], ["Li", "Li", "<b>"], 0.2)[0].numpy()
    figure = weights_figure(weights, [("Li", "Mu"), ("Li", "Ma"), ("<b>", "x" * 40)], LABELS)
    bars = figure.data[0]
    np.testing.assert_allclose(bars.x, weights, rtol=1e-6)
    assert bars.x.dtype == np.float32
    assert bars.marker.color == KEYS
    assert list(figure.layout.yaxis.ticktext) == ["Li → Mu", "Li → Ma", "&lt;b&gt; → xxxxxxxxxxxxxxx…"]
    assert bars.customdata[2].endswith("x" * 40)

"""The chapter on queries, keys and values: its answers are the library's."""

import json
from collections.abc import Callable

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.reading import badges, drawn, figure_names, figures, texts
from tests.visits import Visits
from viz_core.lessons.queries_keys_values import BOOK_DATABASE, soft_lookup

OpenPage = Callable[..., AppTest]
CHAPTER = "queries-keys-values"
LOOKUP = {"weights", "diagram", "hard", "identities"}
NAMES = [list(pair) for pair in BOOK_DATABASE]
BOOK_KEYS = [key for key, _ in BOOK_DATABASE]


def rows(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def test_opens_with_the_books_answers(visits: Visits) -> None:
    app = visits(CHAPTER, **{"qkv-edit": "true"})
    page_text = texts(app)
    assert ":orange[Li] → :green[**Mu**]" in page_text
    assert ":orange[Lipton] → :green[**Zachary**] · edits: 0" in page_text
    assert app.dataframe[0].value.values.tolist() == NAMES


def test_any_query_has_its_weights_at_any_temperature_and_its_names_in_reach(open_page: OpenPage) -> None:
    app = open_page(CHAPTER)
    for query in ("Lipten", "Zhang", "ß*_[x](y)$"):
        app.text_input(key="qkv-query").set_value(query).run()
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
    app = visits(CHAPTER, **{"qkv-names": rows(table), "qkv-query": "Noname", "qkv-edit": "true"})
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
    assert not LOOKUP & set(figure_names(app))
    assert not badges(app)

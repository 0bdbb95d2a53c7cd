"""What a chapter gives to take along, opened again."""

from __future__ import annotations

import csv
import io
import re

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from tests.viz_core.hostile_texts import FORMULAS, MARKUP
from ui.chapter.downloads import archive, array_csv, html_page, listing, table_csv
from ui.text.words import stem_of


def read(content: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))


def test_without_names_places_from_0_stand_there_and_all_but_the_last_axis_go_down() -> None:
    made = read(array_csv(np.arange(12).reshape(2, 3, 2), "corner"))
    assert made[0] == ["corner", "0", "1"]
    assert [row[0] for row in made[1:]] == ["0 · 0", "0 · 1", "0 · 2", "1 · 0", "1 · 1", "1 · 2"]
    assert made[4][1:] == ["6", "7"]
    assert read(array_csv(np.array([0.5]), "key", ("Li",), ("weight",))) == [["key", "weight"], ["Li", "0.5"]]


def test_a_file_opens_in_the_spreadsheet_of_its_language() -> None:
    """Semicolons and decimal commas in Brazil; a byte order mark, which Excel needs."""
    array = np.array([[0.5, 1234.25]])
    assert array_csv(array, "row", ("a",), ("x", "y")) == b"row,x,y\r\na,0.5,1234.25\r\n"
    portuguese = array_csv(array, "linha", ("não",), ("x", "y"), "pt-BR")
    assert portuguese.decode("utf-8") == "\ufefflinha;x;y\r\nnão;0,5;1234,25\r\n"
    chinese = table_csv(pd.DataFrame({"詞元": ["貓"], "權重": [0.5]}), "zh-TW")
    assert chinese.decode("utf-8") == "\ufeff詞元,權重\r\n貓,0.5\r\n"
    opened = pd.read_csv(io.BytesIO(portuguese), sep=";", decimal=",")
    assert opened["y"].tolist() == [1234.25]


def test_a_figure_s_page_writes_numbers_in_its_language() -> None:
    heatmap = go.Heatmap(
        z=np.array([[2e-7, 0.5]]), text=[["2e-07", "0.50"]], texttemplate="%{text}", hovertemplate="%{x}: %{z:.2g}"
    )
    made = html_page(go.Figure(heatmap), "t", "pt-BR").decode().split("Plotly.newPlot(")[-1]
    assert r'"text":[["2 \u00d7 10\u207b\u2077","0,50"]]' in made
    assert r'"hovertext":[["2 \u00d7 10\u207b\u2077","0,5"]]' in made
    assert '"separators":",."' in made


def test_arrays_come_back_as_they_were() -> None:
    with np.load(io.BytesIO(archive({"a": np.eye(2), "b": np.arange(3)}))) as saved:
        np.testing.assert_array_equal(saved["a"], np.eye(2))
        np.testing.assert_array_equal(saved["b"], np.arange(3))


@pytest.mark.attack("exports")
@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_of_a_chapters_table_is_a_formula(text: str) -> None:
    made = read(array_csv(np.array([[1.0]]), "corner", (text,), (text,)))
    assert made == [["corner", f"'{text}"], [f"'{text}", "1.0"]]
    inside = f"cat\r{text}"
    assert read(listing({text: [text, inside]})) == [[f"'{text}"], [f"'{text}"], [inside]]


@pytest.mark.attack("exports")
@pytest.mark.parametrize("text", MARKUP)
def test_a_chapters_figure_says_it_and_does_nothing(text: str) -> None:
    def page(text: str) -> str:
        bars = go.Figure(go.Bar(x=[text, "b"], y=[1, 2], name=text, hovertext=[text, text]))
        return html_page(bars.update_layout(title=text), text).decode()

    made = page(text)
    assert made.count("<script") == page("x").count("<script")
    assert "<img src=x" not in made


@pytest.mark.attack("exports")
@pytest.mark.parametrize("text", [*MARKUP, *FORMULAS])
def test_a_files_name_is_letters_and_hyphens(text: str) -> None:
    assert re.fullmatch(r"[a-z0-9-]*", stem_of(text))

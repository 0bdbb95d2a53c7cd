"""Figures and heatmaps as their components read them, and the files a chapter offers."""

import base64
import csv
import io
import json
import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
import torch

from tests.pages.reading import decode_chart
from tests.viz_core.hostile import FORMULAS, MARKUP
from ui.chapter.downloads import array_csv, listing, table_csv
from ui.text.words import stem_of
from ui.widgets.chart import encode_chart
from ui.widgets.heatmap import WORD_NAMES, Heatmap, encode_heatmap, ranged_heatmap, signed_heatmap, to_pixels
from viz_core.view.components import unframe


def plotlys(figure: go.Figure) -> dict[str, Any]:
    """The figure as plotly's own JSON has it, its base64 read."""

    def read(value: Any) -> Any:
        if isinstance(value, list):
            return [read(each) for each in value]
        if isinstance(value, dict) and "bdata" in value:
            flat = np.frombuffer(base64.b64decode(value["bdata"]), value["dtype"])
            shape = [int(side) for side in str(value.get("shape", flat.size)).split(",")]
            return flat.reshape(shape).tolist()
        return {name: read(each) for name, each in value.items()} if isinstance(value, dict) else value

    found = read(json.loads(figure.to_json()))
    found["layout"].pop("template", None)
    return {"frames": [], **found}


def ours(figure: go.Figure) -> dict[str, Any]:
    def listed(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return value.tolist()
        if isinstance(value, list):
            return [listed(each) for each in value]
        return {name: listed(each) for name, each in value.items()} if isinstance(value, dict) else value

    found = decode_chart(encode_chart(figure))
    found.pop("about")
    return listed(found)


def test_it_says_what_plotly_says() -> None:
    figure = go.Figure(
        [
            go.Scatter(x=np.arange(5), y=np.linspace(0, 1, 5), text=["a<b", "é", "\U0001f600", "", "e"], name="one"),
            go.Heatmap(
                z=np.arange(6, dtype=np.float32).reshape(2, 3), colorscale="Viridis", customdata=[["a", "b", "c"]] * 2
            ),
            go.Bar(x=["u", "v"], y=[0.5, None], marker={"color": ["red", "blue"]}, visible=False),
        ],
        layout={
            "xaxis": {"range": np.array([0.5, 2.5])},
            "height": 300,
            "shapes": [{"type": "line", "x0": 1, "x1": 2}],
        },
        frames=[go.Frame(data=[go.Scatter(y=np.array([1.0, 2.0]))], name="next", layout={"title": {"text": "t"}})],
    )
    assert ours(figure) == plotlys(figure)
    assert isinstance(decode_chart(encode_chart(figure))["layout"]["xaxis"]["range"], list), "no typed array"


def test_gaps_are_null_in_lists_and_stay_nan_in_arrays() -> None:
    figure = go.Figure(go.Scatter(x=[1.0, float("nan"), float("inf")], y=np.array([np.nan, 1], dtype=np.float32)))
    (trace,) = decode_chart(encode_chart(figure))["data"]
    assert trace["x"] == [1.0, None, None]
    assert np.isnan(trace["y"][0])
    assert trace["y"][1] == 1


def test_numbers_of_another_language() -> None:
    """plotly writes its own by `separators`; those that stand as text are written anew, and no token of a reader is."""
    figure = go.Figure(go.Bar(x=[0.5, 1234.5], text=["0.5", "1,234.5"]))
    figure.add_bar(x=[1, 2], text=["1.5", "apples"])
    figure.add_heatmap(z=[[1.5, 2.0]], text=np.array([["1.50", ""]]))
    figure.add_annotation(text="95.0%", x=0, y=0)
    figure.update_layout(xaxis={"ticktext": ["1,024", "2,048"]}, title={"text": "1.2 of 3"})
    decoded = decode_chart(encode_chart(figure, ",."))
    layout = decoded["layout"]
    assert [trace["text"] for trace in decoded["data"]] == [["0,5", "1.234,5"], ["1.5", "apples"], [["1,50", ""]]]
    assert (layout["separators"], layout["xaxis"]["ticktext"]) == (",.", ["1.024", "2.048"])
    assert (layout["annotations"][0]["text"], layout["title"]["text"]) == ("95,0%", "1.2 of 3")
    assert decoded["data"][0]["x"] == [0.5, 1234.5]
    assert "separators" not in decode_chart(encode_chart(figure))["layout"]
    assert figure.data[0].text == ("0.5", "1,234.5")


@pytest.mark.parametrize(("separators", "shown"), [(".,", ["1.2 × 10⁻⁷", "0.5"]), (",.", ["1,2 × 10⁻⁷", "0,5"])])
def test_hover_writes_powers_of_ten_as_formulas_do(separators: str, shown: list[str]) -> None:
    figure = go.Figure(go.Scatter(y=np.array([1.2e-7, 0.5]), hovertemplate="%{x}: %{y:.3g}<extra></extra>"))
    trace = decode_chart(encode_chart(figure, separators))["data"][0]
    assert (trace["hovertemplate"], trace["hovertext"]) == ("%{x}: %{hovertext}<extra></extra>", shown)


WORDS = {name: f"the {name}" for name in WORD_NAMES}


def test_pixels_round_to_the_nearest_of_256_steps() -> None:
    values = torch.tensor([[-1.0, -0.5, 0.0], [0.5, 1.0, 7.0]])
    assert to_pixels(values, -1.0, 1.0).tolist() == [[0, 64, 128], [191, 255, 255]]
    assert torch.equal(values[1, 2], torch.tensor(7.0))  # what came in is left as it was


def test_bytes_hold_pixels_exact_values_and_labels() -> None:
    values = torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
    heatmap = signed_heatmap(values, "word", "dimension", limit=2.0)
    header, start = unframe(data := encode_heatmap(heatmap, WORDS, "pt"))
    pixels = np.frombuffer(data, np.uint8, 15, start + header["pixels"]).reshape(3, 5)
    cells = np.frombuffer(data, np.float32, 15, start + header["exact"]["offset"]).reshape(3, 5)
    assert np.array_equal(pixels, heatmap.pixels)
    assert np.array_equal(cells, values.numpy())
    assert (header["low"], header["high"]) == (-2.0, 2.0)
    assert (header["rows"], header["columns"], header["language"], header["words"]) == (3, 5, "pt", WORDS)
    assert header["colours"][5] == "#f7f7f7"  # zero has no colour
    no_numbers = torch.full((2, 2), torch.nan)
    with warnings.catch_warnings(action="error"):
        made = signed_heatmap(no_numbers, "row", "column"), ranged_heatmap(no_numbers, "row", "column")
    assert [(each.low, each.high) for each in made] == [(-1.0, 1.0), (0.0, 1.0)]
    zeros = signed_heatmap(torch.zeros(2, 2), "row", "column")
    assert (zeros.low, zeros.high) == (-1.0, 1.0)
    inexact = Heatmap(np.zeros((2, 2), np.uint8), 0.0, 1.0, "row", "column", scale="Viridis")
    header, _ = unframe(encode_heatmap(inexact, WORDS))
    assert (header["exact"], header["colours"][0]) == (None, "#440154")


def read(content: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))


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


@pytest.mark.attack("exports")
@pytest.mark.parametrize("text", [*FORMULAS, "@a", "+x", "-"])
def test_no_cell_of_a_chapters_table_is_a_formula(text: str) -> None:
    made = read(array_csv(np.array([[1.0]]), "corner", (text,), (text,)))
    assert made == [["corner", f"'{text}"], [f"'{text}", "1.0"]]
    inside = f"cat\r{text}"
    assert read(listing({text: [text, inside]})) == [[f"'{text}"], [f"'{text}"], [inside]]
    numbers = read(table_csv(pd.DataFrame({"token": [text, "a=b"], "weight": [-1.0, 0.5]})))
    assert numbers[1:] == [[f"'{text}", "-1.0"], ["a=b", "0.5"]]


@pytest.mark.attack("exports")
@pytest.mark.parametrize("text", [*MARKUP, *FORMULAS])
def test_a_files_name_is_letters_and_hyphens(text: str) -> None:
    assert re.fullmatch(r"[a-z0-9-]*", stem_of(text))

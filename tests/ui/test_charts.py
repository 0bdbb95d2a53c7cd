"""Plotly figures and heatmaps as the bytes that their components read."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tests.charts import decode_chart
from ui.widgets.chart import encode_chart
from ui.widgets.heatmap import WORD_NAMES, encode_heatmap, signed_heatmap, to_pixels
from viz_core.view.components import unframe

PLOTLYS_KINDS = {"i1": "int8", "u1": "uint8", "i2": "int16", "u2": "uint16", "i4": "int32", "u4": "uint32"}


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


KINDS = st.sampled_from([*PLOTLYS_KINDS.values(), "float32", "float64", "int64"])


@given(arrays.arrays(KINDS, st.one_of(st.just((7,)), st.tuples(st.integers(1, 4), st.integers(1, 5)))))
def test_numbers_of_any_kind_come_out_as_they_went_in(numbers: np.ndarray) -> None:
    trace = go.Heatmap(z=numbers) if numbers.ndim == 2 else go.Scatter(y=numbers)
    (read,) = decode_chart(encode_chart(go.Figure(trace)))["data"]
    out = read["z" if numbers.ndim == 2 else "y"]
    assert out.shape == numbers.shape
    np.testing.assert_array_equal(out, numbers.astype(out.dtype))


@pytest.mark.parametrize(("given", "sent"), [("float16", "float32"), ("int64", "float64"), ("uint8", "uint8")])
def test_what_javascript_has_no_name_for(given: str, sent: str) -> None:
    figure = go.Figure(go.Scatter(y=np.array([1, 2, 3], dtype=given)))
    assert decode_chart(encode_chart(figure))["data"][0]["y"].dtype == sent


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
    heatmap = signed_heatmap(values, "word", "dimension", row_labels=("a", "b<i>", "\ud800"), limit=2.0)
    header, start = unframe(data := encode_heatmap(heatmap, WORDS, "pt"))
    pixels = np.frombuffer(data, np.uint8, 15, start + header["pixels"]).reshape(3, 5)
    cells = np.frombuffer(data, np.float32, 15, start + header["exact"]["offset"]).reshape(3, 5)
    assert np.array_equal(pixels, heatmap.pixels)
    assert np.array_equal(cells, values.numpy())
    assert (header["low"], header["high"]) == (-2.0, 2.0)
    assert header["row_labels"] == ["a", "b<i>", "\ud800"]
    assert (header["rows"], header["columns"], header["language"], header["words"]) == (3, 5, "pt", WORDS)
    assert header["colours"][5] == "#f7f7f7"  # zero has no colour


def test_a_map_of_zeros_still_has_a_scale() -> None:
    heatmap = signed_heatmap(torch.zeros(2, 2), "row", "column")
    assert (heatmap.low, heatmap.high) == (-1.0, 1.0)

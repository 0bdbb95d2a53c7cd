"""The open map as a figure: its cells are the weights' colours, its tokens and caption stand beside them."""

import re
import xml.etree.ElementTree as ET
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
import torch
from matplotlib.text import Text

from tests.viz_core.view.attention_groups import make_group
from viz_core.runtime.assets import Provenance
from viz_core.view.components import view_words
from viz_core.view.matplotlib_figure import grid_figure, map_figure
from viz_core.view.notebook import AttentionView
from viz_core.view.payload import View
from viz_core.view.requests import Pin
from viz_core.view.state import DisplayOptions, ViewState
from viz_core.view.visible_map import visible_map

START = ViewState("cross", 1, 2)
PIECES = {"query_words": (0, 1, 1, 2, 3), "key_words": (0, 0, 1, 2, 3, 4, 5)}


def colours(state: ViewState) -> np.ndarray:
    """Red, green and blue of each cell, from 0 to 1."""
    group = make_group(5, 7)
    (mesh, *_) = map_figure(View([group], view_words()), state).axes[0].collections
    mesh.update_scalarmappable()
    return mesh.get_facecolor()[:, :3].reshape(5, 7, 3)


@pytest.mark.parametrize("scale", ["linear", "sqrt", "log"])
@pytest.mark.parametrize("palette", ["viridis", "cividis", "magma", "greys"])
def test_each_cell_has_the_colour_of_its_weight(scale: str, palette: str) -> None:
    weights = make_group(5, 7).calls[1].weights(head=2)[0].double().numpy()
    grown = {"linear": weights, "sqrt": weights**0.5, "log": np.clip(1 + np.log10(weights) / 4, 0, 1)}[scale]
    expected = matplotlib.colormaps[{"greys": "Greys"}.get(palette, palette)](grown)[..., :3]
    found = colours(replace(START, display=DisplayOptions(scale=scale, palette=palette)))
    np.testing.assert_allclose(found, expected, atol=0.02)  # one of 256 steps


def height_of(text: ET.Element) -> float:
    """How far down a text stands."""
    found = re.search(r"translate\(\S+ ([\d.]+)\)", text.get("transform", ""))
    return float(found[1] if found else text.get("y", ""))


def test_the_first_query_is_on_top_and_its_token_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("viz_core.view.matplotlib_figure._MORE_FONTS", ())
    tokens = ("<b>", "$x$", "a&b", "new\nline", "\x00猫")
    with pytest.warns(UserWarning, match="no font here has 猫: boxes stand there") as caption:
        AttentionView([make_group(5, 7, query_tokens=tokens)], START).save(tmp_path / "map.svg")
    assert len(caption) == 1
    root = ET.parse(tmp_path / "map.svg").getroot()
    texts = {"".join(node.itertext()).strip(): node for node in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"<b>", "$x$", "a&b", "new⏎line", "�猫", "k0", "k6", "queries: French"} <= texts.keys()
    assert "Cross · Layer 2, head 3" in texts
    assert height_of(texts["<b>"]) < height_of(texts["$x$"])


def test_a_file_says_what_it_shows(tmp_path: Path) -> None:
    made = Provenance("some-model", "1a2b", "$x$ & <b>")
    state, path = replace(START, display=DisplayOptions(heads="all", how="max")), tmp_path / "map.svg"
    AttentionView([make_group(5, 7, provenance=made)], state).save(path, link="https://atlas.example/t?head=cross.1.2")
    caption = " ".join("".join(ET.fromstring(path.read_bytes()).itertext()).split())
    for text in ("https://atlas.example/t?head=cross.1.2", "Cross · Largest of 6 heads", "rows no longer sum to 1"):
        assert text in caption
    for text in ("Model: some-model, revision 1a2b.", "$x$ & <b>", "colour: square root"):
        assert text in caption


def test_side_by_side_draws_both_and_a_difference_is_one() -> None:
    group, second = make_group(5, 7), make_group(4, 7)
    maps = [call.weights()[0] for call in group.calls]
    both = View([group], view_words(), [second], ("A", "B"))

    def drawn(**display: str) -> list[tuple[str, np.ndarray]]:
        axes = map_figure(both, replace(START, display=DisplayOptions(**display))).axes
        return [(each.get_title(), np.asarray(each.collections[0].get_array())) for each in axes if each.get_title()]

    (first, a), (other, b) = drawn(compare="side", other="0.0.1")
    assert (first, other) == ("Cross · Layer 2, head 3", "Cross · Layer 1, head 2")
    np.testing.assert_array_equal(a, maps[1][2])
    np.testing.assert_array_equal(b, maps[0][1])
    ((title, difference),) = drawn(compare="difference", other="0.0.1", scale="log")
    assert title == "Cross · Layer 2, head 3 − Layer 1, head 2"
    np.testing.assert_array_equal(difference, maps[1][2] - maps[0][1])


def test_every_head_is_drawn_as_one_figure() -> None:
    group = make_group(5, 7)
    (mosaic,) = grid_figure(View([group], view_words()), START).axes[0].images
    pixels = np.ma.filled(mosaic.get_array(), np.nan)
    for layer, call in enumerate(group.calls):
        for head in range(call.num_heads):
            top, left = layer * (5 + 2), head * (7 + 2)
            np.testing.assert_array_equal(pixels[top : top + 5, left : left + 7], call.weights(head=head)[0])


def test_what_is_drawn_is_what_is_shown() -> None:
    group = make_group(5, 7, **PIECES)
    maps = torch.stack([call.weights()[0] for call in group.calls])
    layer = visible_map(group, replace(START, display=DisplayOptions(heads="layer", how="max")))
    np.testing.assert_array_equal(layer.weights, maps[1].amax(dim=0))
    every = visible_map(group, replace(START, display=DisplayOptions(heads="all")))
    np.testing.assert_allclose(every.weights, maps.mean(dim=(0, 1)), atol=1e-6)
    two = visible_map(group, replace(START, display=DisplayOptions(heads="0.1_1.0")))
    np.testing.assert_allclose(two.weights, (maps[0, 1] + maps[1, 0]) / 2, atol=1e-6)

    merged = visible_map(group, replace(START, pins=(Pin("key", 2),), display=DisplayOptions(unit="words")))
    assert (merged.queries.names, merged.keys.names[:2]) == (["q0", "q1q2", "q3", "q4"], ["k0k1", "k2"])
    np.testing.assert_allclose(merged.weights[1, 0], maps[1, 2][1:3, :2].sum(dim=1).mean(), atol=1e-6)
    assert (merged.queries.pinned, merged.keys.pinned) == ([], [1])


def test_a_part_has_its_own_tokens_and_a_long_map_its_largest_weights() -> None:
    group = make_group(5, 7)
    weights = group.calls[1].weights(head=2)[0]
    part = visible_map(group, replace(START, display=DisplayOptions(zoom="2.1.2.4")))
    np.testing.assert_array_equal(part.weights, weights[2:4, 1:5])
    assert (part.queries.names, part.keys.names) == (["q2", "q3"], ["k1", "k2", "k3", "k4"])
    pooled = visible_map(group, START, most=3)
    assert (pooled.queries.names, pooled.keys.names) == (["q0", "q2", "q4"], ["k0", "k3", "k6"])
    assert (pooled.weights[0, 1], pooled.weights[2, 2]) == (weights[:2, 3:6].max(), weights[4, 6])


def text_sizes(pdf: bytes) -> set[float]:
    """The sizes of all text in a PDF, in points."""
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL)
    contents = [zlib.decompress(each) for each in streams if each[:1] == b"x"]
    return {float(size) for each in contents for size in re.findall(rb"/F\d+ ([\d.]+) Tf", each)}


@pytest.mark.parametrize("options", [{}, {"grid": True}, {"rows": slice(1, 3), "keys": [6, 0]}])
def test_a_figure_fits_a_column_with_text_of_seven_points(options: dict[str, Any], tmp_path: Path) -> None:
    figure = AttentionView([make_group(14, 14)], START).figure(width_mm=84, **options)
    figure.savefig(tmp_path / "map.pdf")
    content = (tmp_path / "map.pdf").read_bytes()
    (width,) = re.findall(rb"/MediaBox \[ 0 0 ([\d.]+)", content)
    assert float(width) * 25.4 / 72 == pytest.approx(84, abs=0.01)
    assert text_sizes(content) == {7.0}
    assert (b"/Subtype /Image" in content) == ("grid" in options)  # thumbnails are pictures; a scale is none
    figure.draw_without_rendering()
    page = figure.bbox.padded(0.5)
    outside = [
        text.get_text()
        for text in figure.findobj(Text)
        if text.get_text()
        and text.get_visible()
        and not page.contains(*text.get_window_extent().min)
        and not page.contains(*text.get_window_extent().max)
    ]
    assert outside == []


def test_a_block_has_the_weights_of_its_rows_and_keys() -> None:
    group = make_group(5, 7)
    shown = AttentionView([group], replace(START, pins=(Pin("key", 5),)))
    labels = {"queries": ["product C", "product O"], "keys": ["Br", "N"]}
    figure = shown.figure(rows=slice(3, None), keys=[5, -7], labels=labels, title="")
    axes = figure.axes[0]
    weights = group.calls[1].weights(head=2)[0].numpy()
    np.testing.assert_array_equal(axes.collections[0].get_array(), weights[[3, 4]][:, [5, 0]])
    assert [label.get_text() for label in axes.get_yticklabels()] == labels["queries"]
    assert [label.get_text() for label in axes.get_xticklabels()] == labels["keys"]
    assert axes.get_title() == ""
    assert [patch.get_x() for patch in axes.patches] == [0]  # the pin, where its key is drawn

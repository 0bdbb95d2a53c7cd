"""Boxes and arrows: each stands where it was asked for, and an attention has all its columns."""

from __future__ import annotations

import pytest

from ui.blocks.diagram import Arrow, Box, attention_diagram, diagram

LABELS = {f"diagram-{name}": name for name in ("query", "keys", "scores", "weights", "values", "output")}


def test_boxes_and_the_sides_at_which_arrows_end() -> None:
    boxes = {"a": Box("A", 0, 0), "b": Box("B", 2, 0), "c": Box("C", 2, 2)}
    figure = diagram(boxes, [Arrow("a", "b"), Arrow("b", "c", 1.0)])
    across, down, texts = figure.data
    assert (list(across.x), list(across.y)) == (pytest.approx([0.43, 1.57]), [0, 0])
    assert (list(down.x), list(down.y)) == ([2, 2], pytest.approx([0.31, 1.69]))
    assert down.line.width > across.line.width
    assert list(texts.text) == ["A", "B", "C"]
    assert len(figure.layout.shapes) == 6
    low, high = figure.layout.yaxis.range
    assert low > high  # rows go down
    with pytest.raises(ValueError, match="expected names of boxes, got d"):
        diagram(boxes, [Arrow("a", "d")])


def test_an_attention_from_query_to_output() -> None:
    figure = attention_diagram("<q>", ["k", "l"], [0.25, 0.75], ["v", "w"], "sum", LABELS, ["1.0", "2.1"])
    texts = list(figure.data[-1].text)
    assert texts == ["&lt;q&gt;", "k", "1.0", "0.25", "v", "l", "2.1", "0.75", "w", "sum"]
    names = {annotation.text for annotation in figure.layout.annotations}
    assert names == set(LABELS.values())
    assert len(figure.data) == 2 * 5 + 1  # an arrow into each of four columns and one out, for either key
    with pytest.raises(ValueError, match="as many weights and values as keys, got 1, 2, 2"):
        attention_diagram("q", ["k", "l"], [1.0], ["v", "w"], "sum", LABELS)

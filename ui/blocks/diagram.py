"""Diagrams of boxes and arrows."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go

from ui.text.numbers import ENGLISH, with_separators
from ui.widgets import traces
from ui.widgets.figure_style import KEYS, QUERIES, VALUES, WEIGHTS, Labels, escape_labels, lay_out

PLAIN = "#7f8a90"
_ARROW = "rgba(128,128,128,0.85)"
_ROW = 44  # pixels, of an attention
_SMALLEST = 0.02  # a weight below this is drawn as thin as this


class Box(NamedTuple):
    """A box: its text, where its middle is (columns from the left, rows from the top), its colour.

    Attributes:
        fill: 0 to 1, how much of its colour it shows; a weight, say.
    """

    text: str
    x: float
    y: float
    colour: str = PLAIN
    fill: float = 0.2
    width: float = 0.86
    height: float = 0.62


class Arrow(NamedTuple):
    """From one box to another, by their names; the stronger the thicker."""

    start: str
    end: str
    strength: float = 0.2


def diagram(boxes: Mapping[str, Box], arrows: Iterable[Arrow], row: int = 52) -> go.Figure:
    """Boxes with their texts, and arrows between them, in rows of so many pixels."""
    figure = go.Figure()
    for arrow in arrows:
        if missing := {arrow.start, arrow.end} - boxes.keys():
            raise ValueError(f"arrows: expected names of boxes, got {', '.join(sorted(missing))}")
        _draw_arrow(figure, boxes[arrow.start], boxes[arrow.end], arrow.strength)
    drawn = list(boxes.values())
    figure.layout.shapes = [shape for box in drawn for shape in _shapes(box)]  # added one by one, each is checked often
    x, y = (np.array(side, dtype=np.float32) for side in zip(*((box.x, box.y) for box in drawn), strict=True))
    traces.dots(figure, x, y, mode="text", text=[box.text for box in drawn], textfont={"size": 12})
    left, right = (side([box.x + sign * box.width / 2 for box in drawn]) for side, sign in ((min, -1), (max, 1)))
    top, bottom = (side([box.y + sign * box.height / 2 for box in drawn]) for side, sign in ((min, -1), (max, 1)))
    axis: dict[str, Any] = {"visible": False, "fixedrange": True}
    axes = {"xaxis": {"range": [left - 0.06, right + 0.06], **axis}}
    axes["yaxis"] = {"range": [bottom + 0.08, top - 0.08], **axis}
    margin = {"l": 4, "r": 4, "t": 8, "b": 8}
    return lay_out(figure, "", "", round(row * (bottom - top)) + 24, **axes, margin=margin)


def attention_diagram(
    query: str,
    keys: Sequence[str],
    weights: Sequence[float],
    values: Sequence[str],
    output: str,
    labels: Labels,
    scores: Sequence[str] = (),
    separators: str = ENGLISH,
) -> go.Figure:
    """Diagram of attention: one query with every key, and the weighted sum of the values.

    (Dive into Deep Learning, the figures of sections 11.1 and 11.3: with `scores`, what comes before the softmax.)

    Args:
        labels: "diagram-query", "-keys", "-scores", "-weights", "-values" and "-output": what stands in each column.
        separators: of its numbers, before the first decimal and between thousands.
    """
    if not len(keys) == len(weights) == len(values) or (scores and len(scores) != len(keys)):
        raise ValueError(f"expected as many weights and values as keys, got {len(weights)}, {len(values)}, {len(keys)}")
    columns = ["keys", *(["scores"] if scores else []), "weights", "values"]
    middle, right = (len(keys) + 1) / 2, len(columns) + 1
    written, read = (
        [with_separators(each, separators) for each in numbers] for numbers in ([f"{w:.2f}" for w in weights], scores)
    )
    shown = {
        "keys": (escape_labels(list(keys)), KEYS),
        "scores": (escape_labels(read), PLAIN),
        "weights": (written, WEIGHTS),
        "values": (escape_labels(list(values)), VALUES),
    }
    boxes = {"query": Box(escape_labels([query])[0], 0, middle, QUERIES)}
    arrows = []
    for i, weight in enumerate(weights):
        before, strengths = "query", {"keys": 0.2, "scores": 0.2, "weights": weight, "values": weight}
        for x, column in enumerate(columns, start=1):
            texts, colour = shown[column]
            fill = float(weight) if column in ("weights", "values") else 0.2
            boxes[f"{column}-{i}"] = Box(texts[i], x, i + 1, colour, fill)
            arrows.append(Arrow(before, f"{column}-{i}", strengths[column]))
            before = f"{column}-{i}"
        arrows.append(Arrow(before, "output", weight))
    boxes["output"] = Box(escape_labels([output])[0], right, middle, VALUES, 0.5)
    figure = diagram(boxes, arrows, row=_ROW)
    names = ["query", *columns, "output"]
    figure.layout.annotations = [
        {
            "x": x,
            "y": 0.35 if name in columns else middle - 0.65,
            "text": labels[f"diagram-{name}"],
            "showarrow": False,
            "font": {"size": 12},
        }
        for x, name in enumerate(names)
    ]
    top = min(0.0, middle - 0.9)
    return figure.update_layout(yaxis_range=[len(keys) + 0.5, top], height=attention_height(len(keys)))


def attention_height(num_keys: int) -> int:
    """How high `attention_diagram` is with so many keys, in pixels."""
    return _ROW * (num_keys + 1) + 24


def _shapes(box: Box) -> Iterable[dict[str, Any]]:
    """Its ground, and its frame."""
    corners = {"type": "rect", "x0": box.x - box.width / 2, "x1": box.x + box.width / 2}
    corners |= {"y0": box.y - box.height / 2, "y1": box.y + box.height / 2}
    ground = {"fillcolor": box.colour, "opacity": 0.08 + 0.6 * box.fill, "line": {"width": 0}, "layer": "below"}
    return corners | ground, corners | {"line": {"color": box.colour, "width": 1.3}}


def _draw_arrow(figure: go.Figure, start: Box, end: Box, strength: float) -> None:
    """Between the sides that face each other: left and right where one box is beside the other, else top and bottom."""
    if abs(start.x - end.x) >= (start.width + end.width) / 2:
        way = 1 if end.x > start.x else -1
        x, y = [start.x + way * start.width / 2, end.x - way * end.width / 2], [start.y, end.y]
    else:
        way = 1 if end.y > start.y else -1
        x, y = [start.x, end.x], [start.y + way * start.height / 2, end.y - way * end.height / 2]
    width = 0.8 + 4 * max(_SMALLEST, min(1.0, strength))
    head = {"angleref": "previous", "color": _ARROW}
    traces.line(figure, x, y, _ARROW, width=width, size=[0, 9], symbol="arrow", marker=head)

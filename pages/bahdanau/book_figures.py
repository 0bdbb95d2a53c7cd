"""Two networks as boxes and arrows: with one state between encoder and decoder, and with attention."""

from __future__ import annotations

import plotly.graph_objects as go

from ui.blocks.diagram import Arrow, Box, diagram
from ui.widgets.figure_style import ACCENT, KEYS, QUERIES, VALUES, Labels

_STEPS = 3


def plain_model(labels: Labels) -> go.Figure:
    """Diagram: the decoder receives only the encoder's last state."""
    boxes = _encoder() | {"state": Box(labels["state"], 3, 1, ACCENT, 0.5)} | _decoder()
    arrows = [*_along("h"), Arrow(f"h{_STEPS}", "state", 0.6), Arrow("state", "s1", 0.6), *_along("s"), *_words()]
    return diagram(boxes, arrows)


def attention_model(labels: Labels) -> go.Figure:
    """Diagram: before each word, the decoder's last state attends to all states of the encoder."""
    boxes = _encoder() | _decoder() | {"attention": Box(labels["attention"], 3, -0.2, ACCENT, 0.5, width=1.5)}
    arrows = [*_along("h"), *_along("s"), *_words()]
    arrows += [Arrow(f"h{i}", "attention", strength) for i, strength in ((1, 0.1), (2, 0.7), (3, 0.2))]
    arrows += [Arrow("attention", f"s{i + 1}", 0.3) for i in range(_STEPS)]
    return diagram(boxes, arrows)


def _encoder() -> dict[str, Box]:
    words = {f"x{i + 1}": Box(f"x<sub>{i + 1}</sub>", i, 2, KEYS, 0) for i in range(_STEPS)}
    return words | {f"h{i + 1}": Box(f"h<sub>{i + 1}</sub>", i, 1, KEYS) for i in range(_STEPS)}


def _decoder() -> dict[str, Box]:
    words = {f"y{i + 1}": Box(f"y<sub>{i + 1}</sub>", 4 + i, 2, VALUES, 0) for i in range(_STEPS)}
    return words | {f"s{i + 1}": Box(f"s<sub>{i + 1}</sub>", 4 + i, 1, QUERIES) for i in range(_STEPS)}


def _along(letter: str) -> list[Arrow]:
    return [Arrow(f"{letter}{i}", f"{letter}{i + 1}") for i in range(1, _STEPS)]


def _words() -> list[Arrow]:
    return [Arrow(f"x{i + 1}", f"h{i + 1}") for i in range(_STEPS)] + [
        Arrow(f"s{i + 1}", f"y{i + 1}") for i in range(_STEPS)
    ]

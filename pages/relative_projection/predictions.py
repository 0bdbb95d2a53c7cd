"""Figures that readers draw before they see the answer."""

from __future__ import annotations

import numpy as np
import torch

from ui.chapter.chapter import Chapter
from ui.widgets.predictions import Board, OnFigure, Truth
from viz_core.positional import sinusoidal_table

THE_HAND = OnFigure(
    Board("star", (-1.42, 1.42), -1.42, 1.42), "rotation", {"offset": 2, "position": 0, "pair": 0, "type": "float64"}
)


def place_the_hand(chapter: Chapter) -> None:
    """Let the reader place the fastest pair at position 2 on the circle that shows it at position 0."""
    chapter.draw_on_figure("hand", THE_HAND, hand)


def hand() -> Truth:
    """The correct hand, and four mistakes: sine and cosine swapped, turned back, one step short, in degrees."""
    _, one, two = sinusoidal_table(3, 2, dtype=torch.float64).numpy()
    degrees = np.radians(2.0)
    mistakes = {
        "swapped": two[::-1].copy(),
        "back": two * [-1, 1],
        "one": one,
        "degrees": np.array([np.sin(degrees), np.cos(degrees)]),
    }
    return Truth(two, mistakes)

"""What readers draw before they see it."""

from __future__ import annotations

import numpy as np
import torch

from ui.chapter import Chapter
from ui.predictions import Truth
from ui.sketch import Board
from viz_core.positional import sinusoidal_table


def place_the_hand(chapter: Chapter) -> None:
    """Where the fastest hand points at position 2; position 0 and the middle of the circle are there already."""
    names = chapter.words.group("figure")
    sine, cosine = (names[name].format(dimension=i) for i, name in enumerate(("sine", "cosine")))
    start = chapter.words("figure.position-zero")
    board = Board("star", (-1.5, 1.5), -1.5, 1.5, ("", start), ((0.0, 0.0), (0.0, 1.0)), sine, cosine)
    chapter.sketch("hand", board, hand)


def hand() -> Truth:
    """What comes out; and with sine and cosine exchanged, turned back, a step too few, or in degrees."""
    _, one, two = sinusoidal_table(3, 2, dtype=torch.float64).numpy()
    degrees = np.radians(2.0)
    mistakes = {
        "swapped": two[::-1].copy(),
        "back": two * [-1, 1],
        "one": one,
        "degrees": np.array([np.sin(degrees), np.cos(degrees)]),
    }
    return Truth(two, mistakes)

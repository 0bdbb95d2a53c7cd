"""What readers draw before they see it."""

from __future__ import annotations

import torch

from ui.chapter import Chapter
from ui.predictions import Truth
from ui.sketch import Board
from viz_core.positional import sinusoidal_table

_POSITIONS = tuple(range(0, 41, 2))
_COLUMN, _WIDTH = 4, 32


def sketch_the_wave(chapter: Chapter) -> None:
    """One column of the table the page opens with."""
    names = chapter.words.group("figure")
    places = tuple(float(i) for i in _POSITIONS)
    chapter.sketch("wave", Board("curve", places, -1.5, 1.5, (), (), names["position"], names["value"]), wave)


def wave() -> Truth:
    """What comes out; and a faster and a slower column, its cosine, and no wave, for who draws those."""
    table = sinusoidal_table(_POSITIONS[-1] + 1, _WIDTH, dtype=torch.float64)[list(_POSITIONS)].numpy()
    columns = {"fast": 0, "slow": 2 * _COLUMN, "cosine": _COLUMN + 1}
    mistakes = {name: table[:, column] for name, column in columns.items()}
    return Truth(table[:, _COLUMN], mistakes | {"flat": 0 * table[:, _COLUMN]})

"""Figures that readers draw before they see the answer."""

from __future__ import annotations

import torch

from ui.chapter.chapter import Chapter
from ui.widgets.draw_on_figure import OnFigure
from ui.widgets.predictions import Truth
from ui.widgets.sketch import Board
from viz_core.positional import sinusoidal_table

_POSITIONS = tuple(range(0, 41, 2))
COLUMN, _WIDTH = 4, 32
THE_WAVE = OnFigure(
    Board("curve", tuple(float(i) for i in _POSITIONS), -1.08, 1.08),
    "curves",
    {"d": _WIDTH, "n": 60, "base": 10_000, "columns": [COLUMN, 6, 8]},
)


def sketch_the_wave(chapter: Chapter) -> None:
    """Let the reader draw one column on the figure of two slower ones."""
    chapter.draw_on_figure("wave", THE_WAVE, wave)


def wave() -> Truth:
    """The correct column, and four mistakes: a faster one, a slower one, its cosine, and a constant."""
    table = sinusoidal_table(_POSITIONS[-1] + 1, _WIDTH, dtype=torch.float64)[list(_POSITIONS)].numpy()
    columns = {"fast": 0, "slow": 2 * COLUMN, "cosine": COLUMN + 1}
    mistakes = {name: table[:, column] for name, column in columns.items()}
    return Truth(table[:, COLUMN], mistakes | {"flat": 0 * table[:, COLUMN]})

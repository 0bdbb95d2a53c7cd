"""Figures that readers draw before they see the answer."""

from __future__ import annotations

import numpy as np

from ui.chapter.chapter import Chapter
from ui.widgets.predictions import Board, OnFigure, Truth
from viz_core.lessons.queries_keys_values.lookup import BOOK_DATABASE, soft_lookup

_KEYS = tuple(key for key, _ in BOOK_DATABASE)
_QUERY, _COLD, _WARM = "Li", 0.2, 0.5
THE_ROW = OnFigure(
    Board("weights", names=_KEYS), "weights", {"query": _QUERY, "temperature": _WARM, "break": "nothing"}
)


def shade_the_row(chapter: Chapter) -> None:
    """Let the reader shade the weights of one query at a higher temperature."""
    chapter.draw_on_figure("warm", THE_ROW, warm_weights)


def warm_weights() -> Truth:
    """The correct weights, and three mistakes: one-hot, uniform, and at the page's own temperature."""
    warm, cold = (soft_lookup([_QUERY], _KEYS, temperature)[0].numpy() for temperature in (_WARM, _COLD))
    found = np.array([float(key == _QUERY) for key in _KEYS])
    return Truth(warm, {"one": found, "alike": np.full(len(_KEYS), 1 / len(_KEYS)), "cold": cold})

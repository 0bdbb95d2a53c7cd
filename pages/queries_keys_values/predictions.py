"""Figures that readers draw before they see the answer."""

from __future__ import annotations

import numpy as np
import torch

from pages.queries_keys_values.mixture import FIRST_POINTS, Mixture
from ui.chapter.chapter import Chapter
from ui.widgets.draw_on_figure import OnFigure
from ui.widgets.predictions import Truth
from ui.widgets.sketch import Board
from viz_core.lessons.queries_keys_values.lookup import BOOK_DATABASE, soft_lookup

_KEYS = tuple(key for key, _ in BOOK_DATABASE)
_QUERY, _COLD, _WARM = "Li", 0.2, 0.5
_WEIGHTS = np.array([0.25, 0.0, 0.75, 0.0])
_POINTS, _GIVEN = torch.tensor(FIRST_POINTS, dtype=torch.float64), torch.from_numpy(_WEIGHTS)
THE_MIXTURE = Mixture(_POINTS, _GIVEN, _GIVEN, "convex")
THE_STAR = OnFigure(Board("star", (-0.3, 3.3), -0.6, 3.0), "plane", {"case": "convex"})
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


def place_the_star(chapter: Chapter) -> None:
    """Let the reader place the weighted sum of two of the page's first four values."""
    chapter.draw_on_figure("star", THE_STAR, weighted_sum)


def weighted_sum() -> Truth:
    """The correct sum, and four mistakes: the mean, the midpoint, the heavier value, the unweighted sum."""
    points = np.array(FIRST_POINTS)
    first, second = points[_WEIGHTS > 0]
    mistakes = {"mean": points.mean(axis=0), "middle": (first + second) / 2, "heavier": second, "sum": first + second}
    return Truth(_WEIGHTS @ points, mistakes)

"""Figures that readers draw before they see the answer."""

from __future__ import annotations

from pages.attention_pooling.pooling import Pooling
from ui.chapter.chapter import Chapter
from ui.widgets.predictions import Board, OnFigure, Truth
from viz_core.lessons.attention_pooling.curve_fit import even_queries

# The points the page opens with, under a Gaussian twice as wide.
_WIDE = Pooling("gaussian", 1.0, 2.5, 40, 1.0, 3)
_PLACES = even_queries(21)
THE_FIT = OnFigure(
    Board("curve", tuple(_PLACES.tolist()), -1.0, 5.5),
    "fit",
    {name: getattr(_WIDE, name) for name in ("kernel", "width", "n", "noise", "seed")} | {"break": "nothing"},
)


def draw_the_fit(chapter: Chapter) -> None:
    """Let the reader draw the fit of a wide kernel through the page's first points."""
    chapter.draw_on_figure("wide", THE_FIT, wide_fit)


def wide_fit() -> Truth:
    """The correct fit, and two mistakes: the curve behind the points, and a constant."""
    fit = _WIDE.fit(_PLACES)
    mistakes = {"truth": fit.truth.numpy(), "flat": fit.y_train.mean().expand(len(_PLACES)).numpy()}
    return Truth(fit.y_hat.numpy(), mistakes)

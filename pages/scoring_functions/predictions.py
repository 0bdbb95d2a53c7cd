"""Figures that readers draw before they see the answer."""

from __future__ import annotations

import numpy as np
import torch

from ui.chapter.chapter import Chapter
from ui.widgets.predictions import Board, OnFigure, Truth
from viz_core.attention import masked_softmax

_SCORES = torch.tensor([[[1.0, 0.0, 3.0, 5.0]]])
_LENGTH = 3
THE_ROW = OnFigure(
    Board("weights", names=tuple(str(i + 1) for i in range(_SCORES.shape[-1]))),
    "weights",
    {"scores": " ".join(f"{score:g}" for score in _SCORES.flatten().tolist()), "lengths": str(_LENGTH)},
    cells=True,
)


def shade_the_row(chapter: Chapter) -> None:
    """The weights of one query with a valid length, in the cells that will show them."""
    chapter.draw_on_figure("row", THE_ROW, row)


def row() -> Truth:
    """What comes out; and no mask, shares of the plain scores, all on one, and alike, for who shades those."""
    weights, unmasked = (
        masked_softmax(_SCORES, lens)[0, 0].double().numpy() for lens in (torch.tensor([_LENGTH]), None)
    )
    seen = np.arange(_SCORES.shape[-1]) < _LENGTH
    scores = np.where(seen, _SCORES[0, 0].double().numpy(), 0)
    mistakes = {
        "unmasked": unmasked,
        "linear": scores / scores.sum(),
        "largest": (scores == scores.max()).astype(np.float64),
        "alike": seen / seen.sum(),
    }
    return Truth(weights, mistakes)

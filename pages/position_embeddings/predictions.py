"""Figures that readers draw before they see the answer."""

from __future__ import annotations

import numpy as np

from ui.chapter.chapter import Chapter
from ui.widgets.predictions import Truth
from ui.widgets.sketch import Board
from viz_core.positional import alibi_bias, alibi_slopes

_TOKENS, _QUERY, _HEADS = 25, 12, 8


def sketch_the_penalty(chapter: Chapter) -> None:
    """What ALiBi adds to the scores of one query."""
    names = chapter.words.group("figure")
    places = tuple(float(j) for j in range(_TOKENS))
    chapter.sketch("penalty", Board("curve", places, -10.0, 10.0, (), (), names["position"], names["added"]), penalty)


def penalty() -> Truth:
    """What comes out; and nothing, a line that goes on, and twice the slope, for who draws those."""
    added = alibi_bias(_HEADS, _TOKENS, _TOKENS)[0, _QUERY].double().numpy()
    slope = float(alibi_slopes(_HEADS)[0])
    steps = np.arange(_TOKENS) - float(_QUERY)
    return Truth(added, {"flat": 0 * added, "onesided": slope * steps, "steep": 2 * added})

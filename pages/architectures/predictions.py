"""Figures that readers draw before they see the answer."""

from __future__ import annotations

import numpy as np

from ui.chapter.chapter import Chapter
from ui.widgets.predictions import Truth
from ui.widgets.sketch import Board
from viz_core.lessons.architectures import LayerSizes, longest_path

_KERNEL = 3
_TOKENS = tuple(float(n) for n in range(1, 82, 5))


def sketch_the_climb(chapter: Chapter) -> None:
    """How many layers a dilated convolution needs, by the number of tokens."""
    names = chapter.words.group("figure")
    chapter.sketch("climb", Board("curve", _TOKENS, 0.0, 40.0, (), (), names["tokens"], names["path"]), climb)


def climb() -> Truth:
    """The correct curve, and three mistakes: the contiguous stack, half of it, and one layer."""
    dilated, contiguous = (
        np.array([longest_path(name, LayerSizes(int(n), 8, _KERNEL, _KERNEL)) for n in _TOKENS])
        for name in ("dilated", "convolution")
    )
    mistakes = {"straight": contiguous, "half": contiguous / 2, "flat": np.ones(len(_TOKENS))}
    return Truth(dilated.astype(np.float64), mistakes)

"""Figures that only one position scheme has, by its name in the register; a scheme needs none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pages.position_embeddings.tokens import TokenInputs
from ui.chapter.chapter import Chapter

Draw: TypeAlias = Callable[[Chapter, TokenInputs], TokenInputs | None]
"""Draws the figures, and returns the inputs of the map below them where a control of theirs changes these."""

OWN_FIGURES: dict[str, Draw] = {}


def own_figures(scheme: str) -> Callable[[Draw], Draw]:
    """Register a function as the figures of a scheme."""

    def register(draw: Draw) -> Draw:
        OWN_FIGURES[scheme] = draw
        return draw

    return register

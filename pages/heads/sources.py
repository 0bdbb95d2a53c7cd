"""The chapter's source cards."""

from __future__ import annotations

from ui.chapter.chapter import Chapter
from viz_core.maps.roles import beyond_chance


def sources(chapter: Chapter) -> None:
    """Draw the cards, each with the same computed here."""
    chapter.sources({"kappa": beyond_chance(0.6, 0.2)})

"""The decays of RetNet, by the source's formula, beside ours."""

from __future__ import annotations

from ui.chapter.chapter import Chapter
from viz_core.attention.linear import retention_decay


def sources(chapter: Chapter) -> None:
    """The decays of the first three heads."""
    chapter.sources({"retention": retention_decay(3).tolist()})

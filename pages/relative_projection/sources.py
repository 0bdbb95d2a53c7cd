"""The book's projection of one pair, beside ours."""

from __future__ import annotations

import torch

from ui.chapter.chapter import Chapter
from viz_core.positional import relative_projection


def sources(chapter: Chapter) -> None:
    """The matrix of the first pair, whose frequency is 1, for an offset of 1."""
    chapter.sources({"pair": relative_projection(1, 2).to(torch.float64).flatten().tolist()})

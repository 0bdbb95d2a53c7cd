"""The component that plays a walk, and what it says in the reader's language."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ui.text.words import Words, load_words
from ui.widgets.component import component
from viz_core.view.framing import Sections, frame, unframe

CHAPTERS = {
    "tokens": "vision-transformer",
    "embedding": "sinusoidal-encoding",
    "positions": "sinusoidal-encoding",
    "rotation": "position-embeddings",
    "projections": "queries-keys-values",
    "scores": "scoring-functions",
    "mask": "scoring-functions",
    "softmax": "scoring-functions",
    "sum": "attention-pooling",
    "heads": "multi-head",
    "residual": "transformer",
    "feed-forward": "transformer",
    "logits": "model-lab",
    "choice": "model-lab",
}
"""The chapter that explains each stage of the walk."""

mount_walk: Callable[..., Any] = component("walk")


def walk_links(words: Words) -> dict[str, tuple[str, str]]:
    """Return address and title of the chapter that explains each stage."""
    titles = {chapter: load_words(chapter, words.language).title for chapter in CHAPTERS.values()}
    return {stage: (f"./{chapter}", titles[chapter]) for stage, chapter in CHAPTERS.items() if stage != "tokens"}


def in_language(data: bytes, words: Words, height: int) -> bytes:
    """Return a stored walk with its words in a language, for a small picture of so many pixels."""
    header, start = unframe(data)
    sections = Sections()
    sections.data += data[start:]
    spoken = {"words": words.group("view"), "links": walk_links(words), "language": words.language}
    spoken["small"] = height
    return frame({**header, **spoken}, sections)

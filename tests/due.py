"""Translations that are due: their English was rewritten, and their file says `due: true`."""

from __future__ import annotations

import ui.text.words


def is_due(chapter: str, language: str) -> bool:
    """Whether a chapter's translation is older than its English text."""
    return bool(ui.text.words._read(chapter, language).front.get("due"))

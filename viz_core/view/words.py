"""The words of the attention view: assets/text/LANGUAGE/attention-view.md, falling back to English."""

from __future__ import annotations

import re
from functools import lru_cache

from viz_core.runtime.assets import ASSETS

TEXT = ASSETS / "text"
ENGLISH = "en"


@lru_cache(maxsize=16)
def view_words(language: str = ENGLISH) -> dict[str, str]:
    """Every word of the view by its name, as templates with {placeholders}."""
    path = TEXT / language / "attention-view.md"
    own = _sections(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return own if language == ENGLISH else view_words() | own


def _sections(text: str) -> dict[str, str]:
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    return {name.strip(): body.strip() for name, body in zip(parts[1::2], parts[2::2], strict=True)}


WORD_NAMES = tuple(name for name in view_words() if name != "bad_link")
"""The words that the view draws; "bad_link" is said beside it."""

"""The words of the attention view: assets/text/LANGUAGE/attention-view.md, falling back to English."""

import re
from functools import lru_cache
from pathlib import Path

from viz_core.runtime.assets import ASSETS, reading

TEXT = ASSETS / "text"
ENGLISH = "en"


def languages(folder: Path = TEXT) -> tuple[str, ...]:
    """Return the languages that have words, English first: the folders of assets/text."""
    return tuple(sorted((path.name for path in folder.iterdir() if path.is_dir()), key=ENGLISH.__ne__))


def view_words(language: str = ENGLISH) -> dict[str, str]:
    """Return every word of the view by its name, as templates with {placeholders}."""
    return _words("attention-view", language)


def group_labels(file: str, language: str = ENGLISH) -> dict[str, str]:
    """Return labels of a chapter's maps, queries and keys: its sections "view.NAME" by NAME."""
    words = _words(file, language).items()
    return {name.removeprefix("view."): text for name, text in words if name.startswith("view.")}


@lru_cache(maxsize=16)
def _words(file: str, language: str) -> dict[str, str]:
    path = TEXT / language / f"{file}.md"
    own = {}
    if path.is_file() or language == ENGLISH:
        with reading(path):
            parts = re.split(r"^## (.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
            own = {name.strip(): body.strip() for name, body in zip(parts[1::2], parts[2::2], strict=True)}
    return own if language == ENGLISH else _words(file, ENGLISH) | own


WORD_NAMES = tuple(name for name in view_words() if name != "bad_link" and not name.startswith("notebook_"))
"""The words that the view draws; "bad_link" is said beside it, the others stand in the notebook that it saves."""

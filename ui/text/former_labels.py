"""Labels that a chapter once had: addresses saved then still contain them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Literal

from ui.text.words import TEXT
from viz_core.runtime.assets import reading


def former_labels(chapter: str, kind: Literal["option", "break", "tab"]) -> Mapping[str, tuple[str, ...]]:
    """Return the former labels, case-folded and in every language, of each option, broken part or tab of a chapter."""
    return _read().get(chapter, {}).get(kind, {})


@cache
def _read() -> dict[str, dict[str, dict[str, tuple[str, ...]]]]:
    path = TEXT / "former-labels.toml"
    with reading(path):
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        return {
            chapter: {
                kind: {name: tuple(label.casefold() for label in labels) for name, labels in names.items()}
                for kind, names in kinds.items()
            }
            for chapter, kinds in tables.items()
        }

"""The recorder of words: what pages request while each is opened once. None is missing, none in the files is unused."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from ui.chapter.contents import all_pages
from ui.text.words import ENGLISH, SHARED, TEXT, Words, load_words

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(path.stem for path in (TEXT / ENGLISH).glob("*.md"))
# Where a name may be written: in code, and in data whose names have words.
_CODE = ("ui", "pages", "serving", "viz_core", "static_site", "assets/components", "assets/tour", "assets/samples")
_KINDS = (".py", ".js", ".html", ".toml", ".json")


@pytest.fixture(scope="module")
def requested(open_page: Callable[..., AppTest]) -> set[tuple[str, str]]:
    """File and name of the words that any page requests; opening one fails where words are missing."""
    found: set[tuple[str, str]] = set()

    def record(method: Callable[..., Any]) -> Callable[..., Any]:
        def recording(words: Words, name: str, /, **values: object) -> Any:
            answer = method(words, name, **values)
            names = [f"{name}.{each}" for each in answer] if isinstance(answer, dict) else [name]
            found.update((file, each) for each in names for file in (words.chapter, SHARED))
            return answer

        return recording

    with pytest.MonkeyPatch.context() as patch:
        for method in ("__call__", "label", "group"):
            patch.setattr(Words, method, record(getattr(Words, method)))
        for page in all_pages():
            assert [error.value for error in open_page(page).error] == [], page
    return found


@pytest.fixture(scope="module")
def written() -> frozenset[str]:
    """Names that stand anywhere in code or data."""
    paths = [path for folder in _CODE for path in (ROOT / folder).rglob("*") if path.suffix in _KINDS]
    paths += (ROOT / "assets" / "checkpoints").glob("*/config.json")
    models = {path.name for folder in ("checkpoints", "hub") for path in (ROOT / "assets" / folder).iterdir()}
    return frozenset(models.union(*(re.findall(r"[\w.-]+", path.read_text(encoding="utf-8")) for path in paths)))


@pytest.mark.parametrize("file", FILES)
def test_every_section_and_label_is_used(file: str, requested: set[tuple[str, str]], written: frozenset[str]) -> None:
    """A page requests it, or code writes its name, or the last part of it: f"option.{kernel}", `measure_${name}`."""
    words = load_words(file, ENGLISH)
    unused = []
    for name in (*words.sections, *words.front.get("controls", {})):
        if name.startswith("streamlit."):
            continue  # all are sent to the browser
        endings = [name, *(name[match.end() :] for match in re.finditer("[._-]", name))]
        if (file, name) not in requested and not any(written.issuperset(re.split("[ /]", each)) for each in endings):
            unused.append(name)
    assert unused == []

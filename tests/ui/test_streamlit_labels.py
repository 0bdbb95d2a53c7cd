"""Streamlit's own labels: the English ones are those that the installed Streamlit writes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import streamlit

from ui.text.words import ENGLISH, languages, load_words, streamlit_labels

SCRIPTS = Path(streamlit.__file__).parent / "static" / "static" / "js"
# A part that Streamlit fills in: a name, a size, or what the Enter key does.
_FILLED = re.compile(r": |\{\w+\}| • |(?<= to )apply$|Ctrl|⌘")


def test_streamlit_writes_each_of_them() -> None:
    scripts = "\n".join(path.read_text(encoding="utf-8") for path in SCRIPTS.glob("*.js"))
    labels = load_words("common", ENGLISH).group("streamlit")
    pieces = {part for label in labels.values() for part in _FILLED.split(label) if part.strip(" +")}
    assert len(pieces) > 40
    assert sorted(part for part in pieces if part not in scripts) == []


@pytest.mark.parametrize("language", [name for name in languages() if name != ENGLISH])
def test_each_is_translated_with_its_parts(language: str) -> None:
    labels = streamlit_labels(language)
    assert len(labels) == len(load_words("common", ENGLISH).group("streamlit"))
    for english, text in labels.items():
        assert text != english or english == "{label}: {name}"
        assert sorted(re.findall(r"\{\w+\}", text)) == sorted(re.findall(r"\{\w+\}", english)), english


def test_english_needs_none() -> None:
    assert streamlit_labels(ENGLISH) == {}

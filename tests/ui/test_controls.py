"""Where the state of controls stands in an address."""

from __future__ import annotations

import pytest

from ui.chapter.contents import all_chapters
from ui.text.words import ENGLISH, load_words
from ui.widgets.controls import Controls

NAMES = all_chapters()


def _key(chapter: str, name: str) -> str:
    return Controls(load_words(chapter, ENGLISH)).key(name)


def test_no_chapter_answers_to_the_parameters_of_another() -> None:
    owners: dict[str, list[str]] = {}
    for chapter in NAMES:
        owners.setdefault(_key(chapter, "x"), []).append(chapter)
    assert {key: chapters for key, chapters in owners.items() if len(chapters) > 1} == {}


@pytest.mark.parametrize(
    ("chapter", "key"),
    [("transformer", "t-x"), ("vision-transformer", "vt-x"), ("queries-keys-values", "qkv-x"), ("model-lab", "ml-x")],
)
def test_links_of_long_ago_still_name_their_control(chapter: str, key: str) -> None:
    assert _key(chapter, "x") == key

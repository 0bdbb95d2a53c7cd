"""Labels that a chapter once had."""

from __future__ import annotations

from ui.chapter.contents import all_chapters
from ui.text.former_labels import former_labels
from ui.text.words import ENGLISH, load_words


def test_a_former_tab_is_a_section_of_today() -> None:
    for chapter in all_chapters():
        sections = load_words(chapter, ENGLISH).group("section")
        assert set(former_labels(chapter, "tab")) <= set(sections), chapter


def test_labels_of_every_language_are_read() -> None:
    assert former_labels("learning", "option")["own"] == (
        "train one here and now",
        "此時此地訓練一個",
        "treinar uma aqui e agora",
        "現在就在這裡訓練一個",
    )


def test_a_chapter_without_former_labels_has_none() -> None:
    assert former_labels("home", "break") == {}

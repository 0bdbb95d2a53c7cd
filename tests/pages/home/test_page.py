"""The gallery."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from pages.home.gallery import chapter_picture
from ui.contents import CHAPTERS, all_chapters, page_file
from viz_core.pretrained import available

OpenPage = Callable[..., AppTest]


def test_every_chapter_that_exists_has_a_picture_and_a_line(open_page: OpenPage) -> None:
    app = open_page("home")
    found = all_chapters()[1:]
    assert "transformer" in found
    assert len(app.get("image")) == len(found)
    assert len(app.get("page_link")) == len(found)


def test_every_page_file_is_in_the_table_of_contents() -> None:
    named = {page_file(name) for section in CHAPTERS.values() for name in section} | {page_file("home")}
    on_disk = set(page_file("home").parents[1].glob("*/page.py"))
    assert on_disk == named


@pytest.mark.parametrize("chapter", [name for names in CHAPTERS.values() for name in names])
def test_every_chapter_brings_a_picture_of_its_own(chapter: str) -> None:
    assert min(chapter_picture(chapter).size) > 100


def test_models_are_listed_with_their_scores(open_page: OpenPage) -> None:
    app = open_page("home")
    for card in available():
        line = next(m.value for m in app.markdown if card.title in m.value)
        score = card.scores.get("accuracy")
        said = f"{card.scores['bleu_greedy']:.1f} greedy" if score is None else f"{score:.1f}% of its test pictures"
        assert said in line
        assert card.licence in line


def test_without_checkpoints_the_gallery_still_opens(no_checkpoints: None, open_page: OpenPage) -> None:
    app = open_page("home")
    assert "No trained model" in app.info[0].value

"""The book's exercises on their pages: who has answered sees what the experiment says, and nobody before."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.reading import texts
from tests.test_book import EXERCISES
from ui.text.words import ENGLISH, load_words
from ui.widgets.predictions import read_prediction

OpenPage = Callable[..., AppTest]
# Those whose experiment comes with the answer, as a text or as a figure; of a figure, what to look for in it.
_WITH_THE_ANSWER = {
    exercise: exercise.shown.replace("alt.", "look.") for exercise in EXERCISES.values() if "measured" in exercise.shown
}
REVEALED = {
    chapter: [exercise for exercise in _WITH_THE_ANSWER if exercise.chapter == chapter]
    for chapter in sorted({exercise.chapter for exercise in _WITH_THE_ANSWER})
}


@pytest.mark.parametrize("chapter", REVEALED)
def test_what_was_measured_shows_once_a_reader_has_answered(open_page: OpenPage, chapter: str) -> None:
    words = load_words(chapter, ENGLISH)
    answers = {}
    for exercise in REVEALED[chapter]:
        marks = [answer.mark for answer in read_prediction(words(f"exercise.{exercise.name}")).answers]
        answers[f"{words.prefix}-guess-{exercise.name}"] = str(marks.index("x") + 1)
    before, after = texts(open_page(chapter)), texts(open_page(chapter, **answers))
    for exercise in REVEALED[chapter]:
        # The words between the numbers; the longest of them stand nowhere else.
        parts = re.split(r"\{\w+\}", words(_WITH_THE_ANSWER[exercise]).replace("\\", ""))
        assert max(parts, key=len) not in before
        assert all(part in after for part in parts), exercise.name

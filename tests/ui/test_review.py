"""The questions asked again later: two a chapter, alike in every language, and where they come again."""

from __future__ import annotations

import pytest

from ui.chapter.contents import all_chapters
from ui.chapter.exercises import LATER, NUMBERS, chapter_to_repeat, idea_of
from ui.text.words import ENGLISH, languages, load_words
from ui.widgets.predictions import Prediction, read_prediction

CHAPTERS = all_chapters()[1:]


def question(chapter: str, number: str, language: str) -> Prediction:
    return read_prediction(load_words("review", language)(f"{chapter}.{number}"))


@pytest.mark.parametrize("language", languages())
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_chapter_has_two_questions_whose_wrong_answers_have_replies(chapter: str, language: str) -> None:
    for number in NUMBERS:
        found, english = question(chapter, number, language), question(chapter, number, ENGLISH)
        assert [answer.mark for answer in found.answers] == [answer.mark for answer in english.answers]
        assert len(found.answers) > 2
        assert all(bool(answer.reply) == (answer.mark != "x") for answer in found.answers)
        assert idea_of(found.question)


def test_questions_come_again_at_the_start_of_the_third_chapter_after() -> None:
    assert [chapter_to_repeat(chapter) for chapter in CHAPTERS[:LATER]] == [None] * LATER
    assert [chapter_to_repeat(chapter) for chapter in CHAPTERS[LATER:]] == CHAPTERS[:-LATER]
    assert chapter_to_repeat("walk") is None

"""The questions asked again later: two a chapter, alike in every language, and where they come again."""

from __future__ import annotations

import ast

import pytest

from ui.chapter.contents import all_chapters, page_file
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


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_chapter_has_a_figure_that_replies_link(chapter: str) -> None:
    """The link leads to the chapter, and to its main card, or its first."""
    calls = (
        node
        for path in page_file(chapter).parent.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
    )
    assert any(isinstance(call.func, ast.Attribute) and call.func.attr == "card" for call in calls)


def test_the_right_answer_is_at_no_fixed_place() -> None:
    places = [
        [answer.mark for answer in question(chapter, number, ENGLISH).answers].index("x")
        for chapter in CHAPTERS
        for number in NUMBERS
    ]
    assert max(places.count(place) for place in set(places)) < len(places) / 2


def test_questions_come_again_at_the_start_of_the_third_chapter_after() -> None:
    assert [chapter_to_repeat(chapter) for chapter in CHAPTERS[:LATER]] == [None] * LATER
    assert [chapter_to_repeat(chapter) for chapter in CHAPTERS[LATER:]] == CHAPTERS[:-LATER]
    assert chapter_to_repeat("walk") is None


def test_a_question_begins_with_its_idea() -> None:
    assert idea_of("**Mask** How?") == "Mask"
    with pytest.raises(ValueError, match="idea in bold"):
        idea_of("How?")

"""The guided tour: its steps, their questions in every language, and which of them an address asks for."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

import pytest

from ui.chapter.contents import all_chapters
from ui.chapter.tour import requested_step, steps
from ui.text.words import languages, load_words

MAX_LETTERS = 200


def test_it_leads_through_the_chapters_in_reading_order_and_ends_in_the_model_lab() -> None:
    assert 12 <= len(steps()) <= 16
    assert len({step.name for step in steps()}) == len(steps())
    places = [all_chapters().index(step.chapter) for step in steps()]
    assert places[0] == 1
    assert steps()[-1].chapter == all_chapters()[-1]
    turns = [
        step.chapter
        for step, after in zip(steps(), [*steps()[1:], None], strict=True)
        if not after or step.chapter != after.chapter
    ]
    assert len(turns) == len(set(turns)), "no chapter is left and come back to"


@pytest.mark.parametrize("step", steps(), ids=lambda step: step.name)
def test_a_step_sets_what_its_chapter_has(step) -> None:
    words = load_words(step.chapter, "en")
    names = {f"{words.prefix}-{name}" for name in words.front["controls"]}
    names |= {f"{words.prefix}-open-{name}" for name in words.group("section")}
    views = {"head", "pin", "look", f"{words.prefix}-head"}
    assert step.state.keys() <= names | views
    found = urlsplit(step.link)
    assert found.path == step.chapter
    assert dict(parse_qsl(found.query)) == {"tour": str(step.number), **step.state}


@pytest.mark.parametrize("language", languages())
def test_each_step_asks_one_question_and_says_one_short_thing_in_every_language(language: str) -> None:
    """Two or three answers, the same one right as in English, and plain words: no Markdown is read there."""
    for step in steps():
        question, english = step.question(language), step.question("en")
        assert 2 <= len(question.answers) <= 3
        assert [answer.mark for answer in question.answers] == [answer.mark for answer in english.answers]
        assert not any(answer.reply for answer in question.answers)
        content = [question.question, question.why, *(answer.text for answer in question.answers)]
        assert max(map(len, content)) <= MAX_LETTERS
        assert not [each for each in content if re.search(r"[*_`$\n]|\{", each)]
    assert load_words("tour", language).group("step").keys() == {step.name for step in steps()}


@pytest.mark.parametrize("value", ["0", "99", "abc", "1e9", "-1", "1.0", " 1", "01", "", "²", "٣", None])
def test_what_is_no_step_is_none(value: str | None) -> None:
    assert requested_step(steps()[0].chapter, value) is None


def test_a_step_is_one_of_its_own_chapter_alone() -> None:
    first, last = steps()[0], steps()[-1]
    assert requested_step(first.chapter, "1") == first
    assert requested_step(last.chapter, "1") is None
    assert requested_step("home", "1") is None

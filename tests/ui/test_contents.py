"""The register of chapters, the guided tour through them, and the questions asked again later."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
import streamlit

from serving.http.static_scripts import script
from ui.chapter import contents
from ui.chapter.contents import ROOT, SECTIONS, all_chapters, all_pages, chapter_entries, chapters, folder, page_file
from ui.chapter.exercises import NUMBERS, idea_of
from ui.chapter.tour import requested_step, steps
from ui.text.words import ENGLISH, languages, load_words
from ui.widgets.predictions import Prediction, read_prediction

STATIC = Path(streamlit.__file__).parent / "static" / "static" / "js"


@pytest.fixture
def chapters_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder in place of pages/."""
    monkeypatch.setattr(contents, "ROOT", tmp_path)
    chapter_entries.cache_clear()
    yield tmp_path / "pages"
    chapter_entries.cache_clear()


def write(pages: Path, name: str, section: str, order: int) -> None:
    (pages / name).mkdir(parents=True)
    (pages / name / "page.py").write_text("")
    (pages / name / "chapter.toml").write_text(f'section = "{section}"\norder = {order}\n')


@pytest.mark.parametrize("chapter", chapter_entries())
def test_a_chapter_has_all_that_it_needs(chapter: str) -> None:
    """A chapter is a folder and its words: this says what is missing."""
    entry, home = chapter_entries()[chapter], load_words("home", ENGLISH)
    assert page_file(chapter).is_file()
    parts = [path.read_text("utf-8") for path in page_file(chapter).parent.glob("*.py")]
    assert any("def gallery_picture(" in text for text in parts), "its picture for the home page"
    assert (ROOT / "assets" / "gallery" / f"{chapter}.png").is_file(), "draw it: python -m pages.home.draw"
    assert [name for name in ("alt", "teaser") if not home.has(f"{name}.{chapter}")] == []
    for language in languages():
        assert load_words(chapter, language).title
    assert all(script(component).address for component in entry.components)
    assert [name for name in entry.streamlit_scripts if not list(STATIC.glob(f"{name}.*.js"))] == []
    assert (ROOT / "tests" / "pages" / folder(chapter) / "test_page.py").is_file()


def test_every_page_is_registered() -> None:
    assert {page_file(name) for name in all_pages()} == set((ROOT / "pages").glob("*/page.py"))
    assert [name for section in SECTIONS for name in chapters(section)] == all_chapters()[1:]
    assert all(chapters(section) for section in SECTIONS)


def test_no_two_chapters_share_a_prefix_of_query_parameters() -> None:
    prefixes = [load_words(chapter, ENGLISH).prefix for chapter in all_pages()]
    assert len(prefixes) == len(set(prefixes))
    links = {
        "transformer": "t",
        "vision-transformer": "vt",
        "queries-keys-values": "qkv",
        "model-lab": "ml",
        "home": "h",
    }
    assert {chapter: load_words(chapter, ENGLISH).prefix for chapter in links} == links, "links name them"


def test_a_chapter_is_found_by_its_folder_in_its_place(chapters_in: Path) -> None:
    write(chapters_in, "the_last", SECTIONS[-1], 1)
    write(chapters_in, "second", SECTIONS[0], 20)
    write(chapters_in, "first", SECTIONS[0], 3)
    assert all_chapters() == ["home", "first", "second", "the-last"]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (("lost", "nowhere", 1), r"section of lost: expected one of \('attention'.*got 'nowhere'"),
        (("two", SECTIONS[0], 1), "order of .*: expected one of its own"),
    ],
)
def test_a_chapter_without_a_place_of_its_own_is_refused(
    chapters_in: Path, second: tuple[str, str, int], message: str
) -> None:
    write(chapters_in, "one", SECTIONS[0], 1)
    write(chapters_in, *second)
    with pytest.raises(ValueError, match=message):
        all_chapters()


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
def test_a_step_is_one_of_its_own_chapter_alone(value: str | None) -> None:
    first, last = steps()[0], steps()[-1]
    assert requested_step(first.chapter, value) is None
    assert requested_step(first.chapter, "1") == first
    assert requested_step(last.chapter, "1") is requested_step("home", "1") is None


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
    assert idea_of("**Mask** How?") == "Mask"
    with pytest.raises(ValueError, match="idea in bold"):
        idea_of("How?")

"""Every name that code uses is in its chapter's file, all there is used, and every language is held against English."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest

import ui.text.words
from tests.due import is_due
from tests.names_of_words import Code, CodeStrings, Name, code_strings, labels_taken
from ui.chapter.contents import all_chapters
from ui.chapter.tour import steps
from ui.text.words import ENGLISH, SHARED, TEXT, Words, languages, load_words
from ui.widgets.predictions import read_prediction
from viz_core.maps.register import MEASURES
from viz_core.runtime.assets import AssetError
from viz_core.view.words import WORD_NAMES

ROOT = Path(__file__).resolve().parents[1]
CHAPTER_FILES = sorted(path.stem for path in (TEXT / ENGLISH).glob("*.md"))
CHAPTERS_ON_DISK = sorted(path for path in (ROOT / "pages").iterdir() if (path / "page.py").is_file())
VIEW = "attention-view"
BUDGET = 35_000


def _python(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def _scripts() -> list[Path]:
    return [path for path in sorted((ROOT / "assets" / "components").rglob("*")) if path.suffix in (".js", ".html")]


@cache
def names() -> tuple[Name, ...]:
    """Every name of words that any page or what pages share asks for."""
    found = list(Code(_python("ui"), None).names())
    for chapter in CHAPTERS_ON_DISK:
        found += Code(_python(f"pages/{chapter.name}"), chapter.name.replace("_", "-")).names()
    return tuple(found)


@cache
def strings_of_the_view() -> CodeStrings:
    """What may stand for a part of a name in the attention view: what draws it says so."""
    return code_strings(_python("viz_core/view", "viz_core/maps"), _scripts(), [])


@cache
def strings_anywhere() -> CodeStrings:
    """The same in a chapter: what code and data say."""
    models = {path.name for path in (ROOT / "assets" / "checkpoints").iterdir()}
    configs = (ROOT / "assets" / "checkpoints").glob("*/config.json")
    classes = {label for path in configs for label in json.loads(path.read_text(encoding="utf-8")).get("labels", ())}
    samples = sorted((ROOT / "assets" / "samples").rglob("*.json"))
    found = code_strings(_python("viz_core", "serving", "ui", "pages"), [], samples)
    tour = {step.name for step in steps()}
    interface = set(load_words("common", ENGLISH).group("streamlit"))  # all are handed to the browser
    return CodeStrings(
        found.whole | code_strings([], _scripts(), []).whole | models | classes | tour | interface, found.patterns
    )


SOME_CODE = """
def draw(chapter, kind):
    words = chapter.words
    other = load_words("translation")
    chapter.text("a" if kind else "b")
    for name, size in (("c", 1), ("d", 2)):
        if name == "c":
            words(name)
        else:
            words(f"size.{name}")
    chapter.figure("f", picture(words.group("figure")))
    other("result")
    controls.choice("mode", ("x", "y"), "x")
    chapter.common("claims")
    _part(chapter, "g")

def _part(chapter, section):
    chapter.heading(section)
    chapter.claim(f"{section}-{size()}")
"""


def test_names_are_read_however_they_are_given(tmp_path: Path) -> None:
    (tmp_path / "parts.py").write_text(SOME_CODE, encoding="utf-8")
    found = {(name.words, name.kind, name.pattern) for name in Code([tmp_path / "parts.py"], "own").names()}
    sections = ("a", "b", "c", "size.d", "alt.f", "look.f", "heading.g", "claim.g-*", "unbroken.g-*")
    assert found == {("own", "section", name) for name in sections} | {
        ("own", "group", "figure"),
        ("own", "label", "mode"),
        ("translation", "section", "result"),
        ("common", "section", "claims"),
    }


def test_names_are_followed_to_where_they_come_from() -> None:
    assert len(names()) > 900
    unread = [name for name in names() if name.pattern == "*" and name.words not in (None, "common")]
    assert len(unread) <= 2, "say the name where words are asked for, or pass it as a literal"


@pytest.mark.parametrize("path", sorted(TEXT.glob("*/*.md")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_no_section_and_no_label_stands_twice(path: Path) -> None:
    """The later one would be what both places show."""
    front, _, body = path.read_text(encoding="utf-8").removeprefix("---").partition("\n---\n")
    found = [*re.findall(r"^ *[\w-]+:", front, re.MULTILINE), *re.findall(r"^## .*", body, re.MULTILINE)]
    assert sorted(found) == sorted(set(found))


@pytest.mark.parametrize("chapter", CHAPTER_FILES)
def test_every_section_that_code_names_is_there(chapter: str) -> None:
    words = load_words(chapter, ENGLISH)
    labels = words.front.get("controls", {})
    own = [name for name in names() if name.words == chapter and name.must_be]
    sections = {**words.shared, **words.sections}
    assert not [name for name in own if not name.finds(labels if name.kind == "label" else sections)]


@pytest.mark.parametrize("chapter", CHAPTER_FILES)
def test_every_section_is_named_by_code(chapter: str) -> None:
    words = load_words(chapter, ENGLISH)
    handed_over = {VIEW: "*", "walk": "view.*", "review": "view.*", "site": "*"}.get(chapter)  # to the browser, all
    known = strings_of_the_view() if chapter == VIEW else strings_anywhere()
    if chapter in ("walk", "review"):  # Python draws the page, the browser its component
        drawn = strings_of_the_view()
        known = CodeStrings(known.whole | drawn.whole, known.patterns | drawn.patterns)
    if chapter == "site":
        known = code_strings(_python("static_site"), [], [])
    requested = [name for name in names() if chapter == SHARED or name.words in (None, chapter)]
    own = list({(name.kind, name.pattern): name for name in requested}.values())
    own.append(Name(chapter, "group", "option", "what a control offers"))
    if handed_over:
        own.append(Name(chapter, "section", handed_over, "what draws it names it"))
    section_names = [name for name in own if name.kind != "label"]
    labels = [name for name in own if name.kind == "label"]
    dead = [section for section in words.sections if not any(name.covers(section, known) for name in section_names)]
    dead += [label for label in words.front.get("controls", {}) if not any(n.covers(label, known) for n in labels)]
    assert not dead


@pytest.mark.parametrize("chapter", CHAPTERS_ON_DISK, ids=lambda chapter: chapter.name)
def test_every_label_a_figure_takes_from_a_group_is_there(chapter: Path) -> None:
    words = load_words(chapter.name.replace("_", "-"), ENGLISH)
    sections = {**words.shared, **words.sections}
    missing = [
        f"{place}: {label}"
        for place, label in labels_taken(_python(f"pages/{chapter.name}"))
        if not Name(None, "section", f"*.{label}", place).finds(sections)
    ]
    assert not missing


@pytest.mark.parametrize("language", [name for name in languages() if name != ENGLISH])
@pytest.mark.parametrize("chapter", CHAPTER_FILES)
def test_every_language_says_what_english_says(chapter: str, language: str) -> None:
    english, other = ui.text.words._read(chapter, ENGLISH), ui.text.words._read(chapter, language)
    due = is_due(chapter, language)
    if due:  # English was rewritten: what is left of the translation is shown, and English where there is none
        assert set(other.sections) <= set(english.sections)
        assert set(other.front.get("controls", {})) <= set(english.front.get("controls", {}))
    else:
        assert list(other.sections) == list(english.sections), "whole, and in the same order"
        assert other.front.keys() == english.front.keys()
        assert other.front.get("controls", {}).keys() == english.front.get("controls", {}).keys()
    for name, text in other.sections.items():
        assert text, name
        assert _placeholders(text) <= _placeholders(english.sections[name]), name
        if due:
            continue
        assert _placeholders(text) == _placeholders(english.sections[name]), name
        assert _links(text) == _links(english.sections[name]), name
        assert text.count("$") == english.sections[name].count("$"), name
        if name.startswith("exercise."):
            here, there = read_prediction(text), read_prediction(english.sections[name])
            assert [answer.mark for answer in here.answers] == [answer.mark for answer in there.answers], name
            assert [bool(answer.reply) for answer in here.answers] == [bool(a.reply) for a in there.answers], name


# Words by which one thing is more than another. A caption that uses them would be false at some setting of the
# controls, unless data decide it: then it is a finding (`Chapter.finding`), and the chapter's test_words_hold.py
# decides it again. Some captions compare what no control moves:
_COMPARES = re.compile(
    r"\b(wider|narrower|larger|smaller|longer|shorter|higher|lower|faster|slower|nearer|farther|sharper|steeper|"
    r"more|less|fewer|better|worse|half|twice|halves|grows?|falls?|rises?|fades?|darkens?)\b",
    re.IGNORECASE,
)
TRUE_AT_ANY_SETTING = {
    "architectures": {
        "growth": "the formulas of the costs",
    },
    "attention-pooling": {
        "learn": "an average over many draws, which a test makes",
    },
    "heads": {},
    "learning": {},
    "linear-attention": {},
    "multi-head": {},
    "position-embeddings": {
        "penalty": "slopes are positive",
        "shaw": "numbers of a paper",
    },
    "queries-keys-values": {},
    "relative-projection": {
        "rotation": "positions grow",
    },
    "scoring-functions": {
        "gradient": "a (1 - a) is at most a quarter, and 0 at 0 and 1",
    },
    "bahdanau": {},
    "model-lab": {
        "waves": "two numbers; a pair that turns less than once tells no order apart",
    },
    "sinusoidal-encoding": {},
    "transformer": {"worth": "what the colours mean"},
    "vision-transformer": {
        "entropy": "what a bit is",
        "vector": "which row is drawn below",
        "worth": "what the colours mean",
    },
}


@pytest.mark.parametrize("chapter", TRUE_AT_ANY_SETTING)
def test_a_caption_compares_only_what_no_control_moves(chapter: str) -> None:
    captions = load_words(chapter, ENGLISH).group("look")
    comparing = {name for name, text in captions.items() if _COMPARES.search(re.sub(r"\$.*?\$", "", text))}
    assert comparing == set(TRUE_AT_ANY_SETTING[chapter]), "make it a finding, or say here why it is always so"


def test_each_chapter_is_walked_through_settings_where_its_words_must_hold() -> None:
    chapters = all_chapters()[1:]
    assert set(TRUE_AT_ANY_SETTING) == set(chapters)
    pages = Path(__file__).parent / "pages"
    assert [name for name in chapters if not (pages / name.replace("-", "_") / "test_words_hold.py").is_file()] == []


def test_every_chapter_has_its_front_matter_and_question() -> None:
    for chapter in CHAPTER_FILES:
        words = load_words(chapter, ENGLISH)
        assert words.title
        if chapter in all_chapters():
            assert words("question")


def test_the_attention_view_finds_all_its_words() -> None:
    assert {*WORD_NAMES, "bad_link"} <= set(load_words("attention-view", ENGLISH).sections)


def test_a_missing_section_names_its_file() -> None:
    with pytest.raises(AssetError, match="home.md has no section 'nothing'"):
        load_words("home", ENGLISH)("nothing")


def test_only_given_keys_are_filled_so_formulas_keep_their_braces() -> None:
    words = Words("x", {}, {"a": r"{count} of \frac{a}{b}, {with-first}"})
    assert words("a", count=3, **{"with-first": "{count}"}) == r"3 of \frac{a}{b}, {count}"


def test_another_language_falls_back_to_english(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for language, text in (("en", "# \n## a\nEnglish a\n## b\nEnglish b"), ("pt", "## a\nPortuguês a")):
        (tmp_path / language).mkdir()
        (tmp_path / language / "x.md").write_text(f"---\ntitle: {language}\n---\n{text}", encoding="utf-8")
        for_all = f"---\ntitle: {language}\n---\n## b\nshared\n## option.c\nc in {language}"
        (tmp_path / language / f"{SHARED}.md").write_text(for_all, encoding="utf-8")
    monkeypatch.setattr("ui.text.words.TEXT", tmp_path)
    words = load_words("x", "pt")
    assert (words.title, words("a"), words("b")) == ("pt", "Português a", "English b")
    assert words("option.c") == "c in pt" == words.group("option")["c"]
    assert words.has("option.c")
    assert "option.c" not in words.sections
    assert load_words("x", ENGLISH)("option.c") == "c in en"


@pytest.mark.parametrize("chapter", [name for name in CHAPTER_FILES if name not in (SHARED, VIEW)])
def test_no_chapter_repeats_what_all_share(chapter: str) -> None:
    own, shared = (
        [ui.text.words._read(file, language).sections for language in languages()] for file in (chapter, SHARED)
    )
    assert not [name for name in own[0] if [each.get(name) for each in own] == [each.get(name) for each in shared]]


def test_the_pages_keep_to_their_budget_of_words() -> None:
    """In English: texts and labels of all files; bars of tables and other signs by themselves do not count."""
    words = [ui.text.words._read(file, ENGLISH) for file in CHAPTER_FILES]
    texts = [text for each in words for text in each.sections.values()]
    texts += [str(label) for each in words for label in each.front.get("controls", {}).values()]
    assert sum(bool(re.search(r"\w", word)) for text in texts for word in text.split()) <= BUDGET


@pytest.mark.parametrize("path", sorted(TEXT.glob("*/*.md")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_words_that_go_by_a_number_stand_beside_it(path: Path) -> None:
    """Two forms where a language has two, one and other; none in Chinese, which has one."""
    for name, text in ui.text.words._read(path.stem, path.parent.name).sections.items():
        for key, forms in re.findall(r"\{([\w-]+):([^{}|]*\|[^{}]*)\}", text):
            assert path.parent.name != "zh-TW", name
            assert key in _placeholders(text), name
            assert len(forms.split("|")) == 2, name
        assert not re.search(r"\w\((s|es|is|ões)\)", re.sub(r"`[^`]*`|\$[^$]*\$", "", text)), name


@pytest.mark.parametrize("language", languages())
def test_files_have_names_in_ascii(language: str) -> None:
    """Of the attention view by its words, of a chapter by its title, where that can be written so."""
    for name, text in load_words(VIEW, language).sections.items():
        if not name.startswith("stem"):
            continue
        assert re.fullmatch(r"([a-z]+|\{[a-z]+\})(-([a-z]+|\{[a-z]+\}))*", text), name
    stems = [load_words(path.name.replace("_", "-"), language).stem for path in CHAPTERS_ON_DISK]
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", stem) for stem in stems)
    assert len(set(stems)) == len(stems)


def test_a_file_is_called_as_its_chapter_is() -> None:
    assert load_words("sinusoidal-encoding", "pt-BR").stem == "codificacao-senoidal"
    assert load_words("vision-transformer", "zh-TW").stem == "vision-transformer"
    assert load_words("transformer", "pt-BR").stem_of_part("download-table.words", "words") == "o-transformer.palavras"
    assert load_words("transformer", "zh-TW").stem_of_part("download-table.words", "words") == "transformer.words"
    assert load_words("transformer", "en").stem_of_part("download-table.words", "words") == "transformer.words"


def _links(text: str) -> set[str]:
    return set(re.findall(r"\]\(([^)]+)\)|(:material/\w+:)", text))


def _placeholders(text: str) -> set[str]:
    without_formulas = re.sub(r"\$\$.*?\$\$|\$.*?\$", "", text, flags=re.DOTALL)
    return set(re.findall(r"\{([\w-]+)\}", without_formulas))


def test_a_measure_has_one_name_everywhere() -> None:
    view, lab = load_words(VIEW, ENGLISH), load_words("model-lab", ENGLISH)
    both = [name for name in MEASURES if lab.has(f"option.{name}")]
    assert len(both) > 4
    assert {name: lab(f"option.{name}") for name in both} == {name: view(f"measure_{name}") for name in both}

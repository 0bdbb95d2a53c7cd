"""Every name a page uses is in its chapter's file, and every language is held against English."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ui.contents import CHAPTERS
from ui.words import ENGLISH, TEXT, Words, languages, load_words
from viz_core.view.words import WORD_NAMES

ROOT = Path(__file__).resolve().parents[1]
CHAPTER_FILES = sorted(path.stem for path in (TEXT / ENGLISH).glob("*.md"))
CHAPTERS_ON_DISK = sorted(path for path in (ROOT / "pages").iterdir() if (path / "page.py").is_file())
# What a method of Chapter or Controls makes of the name it is given.
SECTIONS = {
    "text": ["{}"],
    "heading": ["heading.{}"],
    "figure": ["alt.{}"],
    "heatmap": ["alt.{}", "cell.{}"],
    "claim": ["claim.{}"],
    "claim_at_least": ["claim.{}"],
    "exercise": ["exercise.{}"],
    "look_for": ["look.{}"],
    "tabs": ["option.{}"],
}
CONTROLS = {"slider", "stops", "number", "choice", "select", "several", "toggle", "area", "controls.text"}


def sources(chapter: Path) -> list[Path]:
    """Every file of a chapter."""
    return sorted(chapter.glob("*.py"))


def _method(function: ast.Attribute) -> str:
    """The method's name; `controls.text` asks for a line of text, where a chapter's `text` shows a section."""
    owner = function.value.attr if isinstance(function.value, ast.Attribute) else ast.unparse(function.value)
    return "controls.text" if (owner, function.attr) == ("controls", "text") else function.attr


def literal_calls(path: Path) -> Iterator[tuple[str, list[str]]]:
    """(method, the names it is given) of every call of a method in a file: literal strings, or a tab's keywords."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            names = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            method = _method(node.func)
            yield method, [keyword.arg or "" for keyword in node.keywords] if method == "tabs" else names


@pytest.mark.parametrize("chapter", CHAPTERS_ON_DISK, ids=lambda chapter: chapter.name)
def test_every_section_a_chapter_names_is_there(chapter: Path) -> None:
    words = load_words(chapter.name.replace("_", "-"), ENGLISH)
    missing = []
    for path in sources(chapter):
        for method, names in literal_calls(path):
            wanted = names if method == "tabs" else names[:1]
            missing += [s.format(n) for s in SECTIONS.get(method, []) for n in wanted if not words.has(s.format(n))]
            if method in CONTROLS and names and names[0] not in words.front.get("controls", {}):
                missing.append(f"controls: {names[0]}")
    assert not missing


@pytest.mark.parametrize("language", languages())
@pytest.mark.parametrize("chapter", CHAPTER_FILES)
def test_no_language_says_what_english_does_not(chapter: str, language: str) -> None:
    english, other = _file(chapter, ENGLISH), _file(chapter, language)
    assert set(other.sections) <= set(english.sections)
    assert set(other.front.get("controls", {})) <= set(english.front.get("controls", {}))
    for name, text in other.sections.items():
        assert _placeholders(text) == _placeholders(english.sections[name]), name


def test_every_chapter_has_its_front_matter_and_question() -> None:
    for chapter in CHAPTER_FILES:
        words = load_words(chapter, ENGLISH)
        assert words.title
        if chapter in {"home", *(name for names in CHAPTERS.values() for name in names)}:
            assert words("question")


def test_the_attention_view_finds_all_its_words() -> None:
    assert {*WORD_NAMES, "bad_link"} <= set(load_words("attention-view", ENGLISH).sections)


def test_a_missing_section_names_its_file() -> None:
    with pytest.raises(KeyError, match="home.md has no section 'nothing'"):
        load_words("home", ENGLISH)("nothing")


def test_only_given_keys_are_filled_so_formulas_keep_their_braces() -> None:
    words = Words("x", {}, {"a": r"{count} of \frac{a}{b}"})
    assert words("a", count=3) == r"3 of \frac{a}{b}"


def test_another_language_falls_back_to_english(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for language, text in (("en", "# \n## a\nEnglish a\n## b\nEnglish b"), ("pt", "## a\nPortuguês a")):
        (tmp_path / language).mkdir()
        (tmp_path / language / "x.md").write_text(f"---\ntitle: {language}\n---\n{text}", encoding="utf-8")
    monkeypatch.setattr("ui.words.TEXT", tmp_path)
    words = load_words("x", "pt")
    assert (words.title, words("a"), words("b")) == ("pt", "Português a", "English b")


def _file(chapter: str, language: str) -> Words:
    path = TEXT / language / f"{chapter}.md"
    return load_words(chapter, language) if path.is_file() else Words(chapter, {}, {})


def _placeholders(text: str) -> set[str]:
    without_formulas = re.sub(r"\$.*?\$", "", text, flags=re.DOTALL)
    return set(re.findall(r"\{(\w+)\}", without_formulas))

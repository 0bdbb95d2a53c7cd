"""The register of chapters: what each entry must have, and what the register refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit

from serving.http.static_scripts import script
from ui.chapter import contents
from ui.chapter.contents import ROOT, SECTIONS, all_chapters, all_pages, chapter_entries, chapters, folder, page_file
from ui.text.words import ENGLISH, languages, load_words

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


def test_an_unknown_section_is_refused(chapters_in: Path) -> None:
    write(chapters_in, "lost", "nowhere", 1)
    with pytest.raises(ValueError, match=r"section of lost: expected one of \('attention'.*got 'nowhere'"):
        all_chapters()

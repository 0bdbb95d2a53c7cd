"""The table of contents: which chapters there are, in which order.

A chapter is a folder of pages/ with a page.py and a chapter.toml; adding one changes nothing here.
It imports nothing heavy: st.navigation must come before a first run has loaded torch, or visitors see file names.
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from ui.streamlit_internals.script_run import StreamlitPage
from ui.text.words import load_words
from viz_core.runtime.assets import ASSETS

ROOT = Path(__file__).resolve().parents[2]
SECTIONS = ("attention", "positions", "models")
"""The sections in reading order; `section.NAME` in common.md is the title of each."""

_PAGE = "page"  # of the last run

NO_CHAPTERS = ("walk", "review")
"""The pages beside home that are not chapters."""

WALK_STAGES = (
    *("tokens", "embedding", "positions", "projections", "scores", "mask", "softmax"),
    *("sum", "heads", "residual", "feed-forward", "logits", "choice"),
)
"""The stages of the walk that chapters explain, in its order."""


@dataclass(frozen=True)
class ChapterEntry:
    """What a chapter.toml says.

    Attributes:
        name: of the chapter, as in its URL.
        section: one of `SECTIONS`.
        order: its place in the section; chapters of a section are sorted by it.
        components: components of ours in the page's first window, whose scripts a browser loads first, in their order.
        streamlit_scripts: chunks of Streamlit's front end that only some chapters need, likewise.
        walk: stages of the walk that the chapter explains.
        site: each `control` that the site without a server records, its `values`, and the one that it `start`s on.
    """

    name: str
    section: str
    order: int
    components: tuple[str, ...] = ()
    streamlit_scripts: tuple[str, ...] = ()
    walk: tuple[str, ...] = ()
    site: tuple[dict[str, Any], ...] = ()


@cache
def chapter_entries() -> dict[str, ChapterEntry]:
    """Every chapter by name, in reading order.

    Raises:
        ValueError: if a chapter's section is none of `SECTIONS`, or two chapters have the same place.
    """
    found = [_read(path) for path in (ROOT / "pages").glob("*/chapter.toml") if (path.parent / "page.py").is_file()]
    places: dict[tuple[int, int], ChapterEntry] = {}
    for entry in found:
        if entry.section not in SECTIONS:
            raise ValueError(f"section of {entry.name}: expected one of {SECTIONS}, got {entry.section!r}")
        place = SECTIONS.index(entry.section), entry.order
        if place in places:
            raise ValueError(f"order of {entry.name}: expected one of its own, got that of {places[place].name}")
        places[place] = entry
    return {places[place].name: places[place] for place in sorted(places)}


def _read(path: Path) -> ChapterEntry:
    values = tomllib.loads(path.read_text(encoding="utf-8"))
    values.pop("cases", None)  # of its tests
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    return ChapterEntry(path.parent.name.replace("_", "-"), **values)


def folder(chapter: str) -> str:
    """Return the name of a chapter's folder in pages/: its URL as a Python name."""
    return chapter.replace("-", "_")


def page_file(chapter: str) -> Path:
    """Return the path of a chapter's page.py."""
    return ROOT / "pages" / folder(chapter) / "page.py"


def chapters(section: str) -> list[str]:
    """Return the chapters of a section in reading order."""
    return [name for name, entry in chapter_entries().items() if entry.section == section]


def all_chapters() -> list[str]:
    """Return every chapter in reading order, home first."""
    return ["home", *chapter_entries()]


def all_pages() -> list[str]:
    """Return every page: home, those that are not chapters, and the chapters."""
    home, *chapters_ = all_chapters()
    return [home, *NO_CHAPTERS, *chapters_]


def page(chapter: str, language: str | None = None) -> StreamlitPage:
    """Return a chapter's page for st.navigation, st.page_link and st.switch_page, titled in the visitor's language."""
    title = load_words(chapter, language).menu
    return st.Page(page_file(chapter), title=title, url_path=chapter, default=chapter == "home")


def pages() -> dict[str, list[StreamlitPage]]:
    """Return the pages that are not chapters, then every section with its chapters."""
    common = load_words("common")
    language = common.language
    sections = {common(f"section.{name}"): [page(c, language) for c in chapters(name)] for name in SECTIONS}
    return {"": [page(name, language) for name in ("home", *NO_CHAPTERS)], **sections}


def enter() -> StreamlitPage:
    """Set up the window and the table of contents; return the page of the URL."""
    current = st.navigation(pages(), expanded=True)  # a chapter behind "View more" is not found
    atlas = load_words("home").title
    title = atlas if current.url_path == "" else f"{current.title} · {atlas}"
    st.set_page_config(page_title=title, page_icon=str(ASSETS / "components/logo.svg"), layout="wide")
    if st.session_state.setdefault(_PAGE, current.url_path) != current.url_path:
        st.session_state[_PAGE] = current.url_path
        # What the last run of the page that was left wrote into the URL may have arrived after the link was followed.
        st.query_params.update()
    return current

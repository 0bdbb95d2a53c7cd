"""The table of contents: which chapters there are, in which order.

It imports nothing heavy: st.navigation must come before a first run has loaded torch, or visitors see file names.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from ui.text.words import load_words
from viz_core.runtime.assets import ASSETS

ROOT = Path(__file__).resolve().parents[2]

# Sections and chapters in reading order; a chapter appears once its page exists.
CHAPTERS = {
    "attention": (
        "queries-keys-values",
        "attention-pooling",
        "scoring-functions",
        "bahdanau",
        "multi-head",
        "architectures",
    ),
    "positions": ("sinusoidal-encoding", "relative-projection", "position-embeddings", "learning"),
    "models": ("transformer", "vision-transformer", "model-lab"),
}


def folder(chapter: str) -> str:
    """The name of a chapter's folder in pages/: as its URL, but a Python name."""
    return chapter.replace("-", "_")


def page_file(chapter: str) -> Path:
    return ROOT / "pages" / folder(chapter) / "page.py"


def chapters(section: str) -> list[str]:
    """The chapters of a section whose pages exist."""
    return [name for name in CHAPTERS[section] if page_file(name).is_file()]


def all_chapters() -> list[str]:
    """Every chapter whose page exists, home first."""
    return ["home", *(name for section in CHAPTERS for name in chapters(section))]


def page(chapter: str) -> StreamlitPage:
    """What st.navigation, st.page_link and st.switch_page take."""
    return st.Page(page_file(chapter), title=load_words(chapter).menu, url_path=chapter, default=chapter == "home")


def pages() -> dict[str, list[StreamlitPage]]:
    """Home, then every section that has chapters."""
    common = load_words("common")
    sections = {common(f"section.{name}"): [page(c) for c in chapters(name)] for name in CHAPTERS}
    return {"": [page("home")], **{title: found for title, found in sections.items() if found}}


def enter() -> StreamlitPage:
    """Set up the window and the table of contents; the page the address asks for."""
    asked = st.navigation(pages(), expanded=True)  # a chapter behind "View more" is not found
    atlas = load_words("home").title
    title = atlas if asked.url_path == "" else f"{asked.title} · {atlas}"
    st.set_page_config(page_title=title, page_icon=str(ASSETS / "components/logo.svg"), layout="wide")
    return asked

"""The table of contents: which chapters there are, in which order, and what the sidebar says."""

from __future__ import annotations

from pathlib import Path

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from ui.words import load_words
from viz_core.device import best_device, describe_device

ROOT = Path(__file__).resolve().parent.parent
LOGO = ROOT / "assets" / "components" / "logo.svg"
WORDMARK = ROOT / "assets" / "components" / "wordmark.svg"

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
    "positions": ("sinusoidal-encoding", "relative-projection", "position-embeddings"),
    "models": ("transformer", "vision-transformer", "model-lab"),
}


def page_file(chapter: str) -> Path:
    return ROOT / "pages" / f"{chapter.replace('-', '_')}.py"


def chapters(section: str) -> list[str]:
    """The chapters of a section whose pages exist."""
    return [name for name in CHAPTERS[section] if page_file(name).is_file()]


def page(chapter: str) -> StreamlitPage:
    """What st.navigation, st.page_link and st.switch_page take."""
    return st.Page(page_file(chapter), title=load_words(chapter).title, url_path=chapter, default=chapter == "home")


def pages() -> dict[str, list[StreamlitPage]]:
    """Home, then every section that has chapters."""
    common = load_words("common")
    sections = {common(f"section.{name}"): [page(c) for c in chapters(name)] for name in CHAPTERS}
    return {"": [page("home")], **{title: found for title, found in sections.items() if found}}


def sidebar() -> None:
    """Name, device and how to share."""
    common = load_words("common")
    st.logo(WORDMARK, icon_image=LOGO, size="large")
    with st.sidebar, st.container(key="sidebar-foot"):
        st.badge(describe_device(best_device()), icon=":material/memory:", color="gray")
        st.caption(common("share"))

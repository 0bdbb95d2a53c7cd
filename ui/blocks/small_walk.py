"""The small walks of pages, stored by `python -m pages.home.draw`: a fresh server needs no torch for them."""

from __future__ import annotations

import streamlit as st

from ui.chapter.contents import page
from ui.text.words import load_words
from ui.widgets.walk import in_language, mount_walk
from viz_core.runtime.assets import ASSETS, reading

FILES = {kind: ASSETS / "gallery" / f"walk-{kind}.bin" for kind in ("writer", "translator")}
"""Where the walk of each model is stored."""


def small_walk(kind: str, language: str, height: int = 260) -> None:
    """Draw a walk that plays by itself, without controls.

    Args:
        height: of the picture, in pixels.
    """
    with reading(FILES[kind]):
        data = FILES[kind].read_bytes()
    mount_walk(key=f"walk-{kind}", data=in_language(data, load_words("walk", language), height))


def walk_link(language: str) -> None:
    """Draw the link to the page of the whole walk."""
    st.page_link(page("walk"), label=load_words("walk", language)("whole"), icon=":material/arrow_forward:")

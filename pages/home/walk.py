"""The small walk of the home page, stored by `python -m pages.home.draw`: a fresh server needs no torch for it."""

from __future__ import annotations

import streamlit as st

from ui.chapter.contents import page
from ui.chapter.frame import Frame
from ui.text.words import load_words
from ui.widgets.walk import in_language, mount_walk
from viz_core.runtime.assets import ASSETS, reading

FILE = ASSETS / "gallery" / "walk.bin"


def small_walk(home: Frame) -> None:
    """Draw a walk that plays by itself, without controls."""
    with reading(FILE):
        data = FILE.read_bytes()
    words = load_words("walk", home.words.language)
    mount_walk(key="home-walk", data=in_language(data, words))
    st.page_link(page("walk"), label=words("whole"), icon=":material/arrow_forward:")

"""The small walk of the Transformer, stored by `python -m pages.home.draw`: a fresh server needs no torch for it."""

import streamlit as st

from ui.chapter.contents import page
from ui.text.words import load_words
from ui.widgets.walk import in_language, mount_walk
from viz_core.runtime.assets import ASSETS, reading

FILE = ASSETS / "gallery" / "walk-translator.bin"
"""Where the translator's walk is stored."""


def small_walk(language: str, height: int) -> None:
    """Draw the translator's walk, which plays by itself, without controls.

    Args:
        height: of the picture, in pixels.
    """
    with reading(FILE):
        data = FILE.read_bytes()
    mount_walk(key="walk-translator", data=in_language(data, load_words("walk", language), height))


def walk_link(language: str) -> None:
    """Draw the link to the page of the whole walk."""
    label = load_words("walk", language)("whole")
    st.page_link(page("walk"), label=label, icon=":material/arrow_forward:", width="content")

"""The gallery: every chapter with a picture, the shipped models, and their device."""

import streamlit as st

from pages.home.gallery import chapter_card, mark_visited, model_list
from ui.blocks.small_walk import small_walk, walk_link
from ui.chapter.contents import SECTIONS, chapters
from ui.chapter.frame import Frame
from ui.chapter.tour import tour_card

home = Frame("home")
home.question()
home.text("intro")
with st.container(horizontal=True, key="begin"):
    home.next()
    tour_card()
small_walk("writer", home.words.language)
walk_link(home.words.language)
mark_visited(home)
for section in SECTIONS:
    st.header(home.common(f"section.{section}"), anchor=section)
    with st.container(horizontal=True, key=f"gallery-{section}"):
        for name in chapters(section):
            chapter_card(home, name)
home.heading("models")
model_list(home)

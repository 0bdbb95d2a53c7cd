"""The gallery: every chapter as a live picture, the models that ship, the device they run on."""

import streamlit as st

from pages.home.gallery import chapter_card, model_list
from ui.chapter import Chapter
from ui.contents import CHAPTERS, chapters

chapter = Chapter("home")
chapter.question()
chapter.text("intro")
for section in CHAPTERS:
    names = chapters(section)
    if names:
        st.subheader(chapter.common(f"section.{section}"), anchor=section)
        with st.container(horizontal=True, key=f"gallery-{section}"):
            for name in names:
                chapter_card(chapter, name)
chapter.heading("models")
model_list(chapter)

"""The cards of the home page."""

import json

import streamlit as st

from ui.chapter.contents import all_chapters, page
from ui.chapter.frame import Frame
from ui.widgets.component import component
from viz_core.runtime.assets import ASSETS, reading

PICTURES = ASSETS / "gallery"
"""The picture of each chapter, stored by `python -m pages.home.draw`, so that a fresh server needs no torch for it."""


_mount_seen = component("seen", in_page=True)


def mark_visited(home: Frame) -> None:
    """Mark visited chapters on the cards; the record stays in the browser."""
    titles = {name: page(name).title for name in all_chapters()[1:]}
    # As bytes: for a dictionary Streamlit imports pandas.
    data = json.dumps({"titles": titles, "words": home.words.group("seen")})
    _mount_seen(key="seen", data=data.encode())


def chapter_card(home: Frame, name: str) -> None:
    """A chapter's picture, its name as a link and a line about it."""
    with st.container(border=True, width=300, key=f"card-{name}"):
        path = PICTURES / f"{name}.png"
        with reading(path):
            st.image(path, width="stretch", alt=home.words(f"alt.{name}"))
        link = page(name)
        number = all_chapters().index(name)
        st.page_link(
            link, label=home.words("numbered", number=number, title=link.title), icon=":material/arrow_forward:"
        )
        st.caption(home.words(f"teaser.{name}"))

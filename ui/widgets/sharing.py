"""Sharing a page, in the sidebar: by its URL, and by its page without a server where there is one."""

from __future__ import annotations

import streamlit as st

from serving.settings import settings
from ui.streamlit_internals.types import StreamlitInvalidLayoutContextError
from ui.text.words import Words, load_words
from ui.widgets.component import component
from ui.widgets.static_pages import static_pages

_mount = component("static_link")


class Sharing:
    """The note on sharing, and the link to the static page."""

    def __init__(self, words: Words) -> None:
        """Draw the note, and the link if the Atlas has a static site."""
        self.common = load_words("common")
        self._unlinked: dict[str, str] = {}
        self._note = st.empty()
        self._note.caption(self.common("share"))
        pages = static_pages(words) if settings().site else []
        if pages:
            site = {"address": settings().site.rstrip("/"), "language": words.language, "pages": pages}
            _mount(key="static-link", data=site | {"label": self.common("share-static")})

    def report_unlinked(self, key: str, label: str) -> None:
        """Say that the URL does not hold the text of this control."""
        self._unlinked[key] = label
        try:
            self._note.caption(self.common("share-but", label=list(self._unlinked.values())))
        except StreamlitInvalidLayoutContextError:  # a fragment by itself; in a run of the page it may write here
            st.rerun()

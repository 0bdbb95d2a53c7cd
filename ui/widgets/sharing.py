"""Sharing a page, in the sidebar: by its URL, or by a file if a text is too long for the URL."""

from __future__ import annotations

import streamlit as st

from serving.settings import settings
from ui.streamlit_internals.types import StreamlitInvalidLayoutContextError
from ui.text.words import Words, load_words
from ui.widgets.component import component
from ui.widgets.page_file import VERSION, PageFile, PageFileError, read_page_file
from ui.widgets.static_pages import static_pages

_mount = component("page_file")
_LOADED = "page-file-loaded"  # a file to whose URL the browser navigates
_COUNT = "page-file-count"  # of files loaded; part of the uploader's key
_TEXTS = "page-file-texts"  # texts for controls that are not drawn yet


class Sharing:
    """The note on sharing, and the buttons to save and load a page file."""

    def __init__(self, words: Words) -> None:
        """Draw the note; buttons are added below it."""
        self.words, self.common = words, load_words("common")
        self._unlinked: dict[str, tuple[str, str]] = {}
        self._offers_upload = False
        self._note, self._save, self._upload = st.empty(), st.empty(), st.container()
        self._note.caption(self.common("share"))
        pages = static_pages(words) if settings().site else []
        if pages:
            site = {"address": settings().site.rstrip("/"), "language": words.language, "pages": pages}
            _mount(key="page-file-site", data={"site": site | {"label": self.common("share-static")}})
        _apply_loaded_file()

    def report_unlinked(self, key: str, label: str, text: str) -> None:
        """Note that the URL does not hold the text of this control, and offer a file that does."""
        self._unlinked[key] = (label, text)
        labels = [label for label, _ in self._unlinked.values()]
        try:
            self._note.caption(self.common("share-but", label=labels))
        except StreamlitInvalidLayoutContextError:  # a fragment by itself; in a run of the page it may write here
            st.rerun()
        page = {
            "attention-atlas": VERSION,
            "chapter": self.words.chapter,
            "texts": {key: text for key, (_, text) in self._unlinked.items()},
        }
        with self._save:
            save = {"page": page, "name": f"{self.words.stem}.json", "label": self.common("file.save")}
            _mount(key=f"page-file-save-{len(self._unlinked)}", data={"save": save})

    def offer_upload(self) -> None:
        """Offer to load a page file; once a page."""
        if self._offers_upload:
            return
        self._offers_upload = True
        with self._upload:
            with st.popover(self.common("file.open"), type="tertiary", icon=":material/file_open:"):
                self._uploader()
            loaded: PageFile | None = st.session_state.get(_LOADED)
            if loaded is not None:
                go = {"turn": st.session_state[_COUNT], "address": loaded.address}
                _mount(key="page-file-go", data={"go": go})

    def _uploader(self) -> None:
        count = st.session_state.setdefault(_COUNT, 0)
        file = st.file_uploader(self.common("file.choose"), type="json", max_upload_size=1, key=f"page-file-{count}")
        if file is None:
            return
        prefix = self.words.prefix
        known = {f"{prefix}-{name}" for name in self.words.front.get("controls", {})}
        try:
            st.session_state[_LOADED] = read_page_file(file.getvalue(), self.words.chapter, prefix, known)
        except PageFileError as error:
            st.session_state.pop(_LOADED, None)
            st.warning(self.common(f"file.{error.reason}", **error.values), icon=":material/file_open:")


def _apply_loaded_file() -> None:
    """Once the browser shows the URL of the loaded file, hold its texts for their controls.

    The browser navigates as with the Back button, so every control takes its value from the URL.
    """
    loaded: PageFile | None = st.session_state.get(_LOADED)
    if loaded is not None and loaded.address == {name: st.query_params.get_all(name) for name in st.query_params}:
        del st.session_state[_LOADED]
        st.session_state[_TEXTS] = dict(loaded.texts)
        st.session_state[_COUNT] += 1  # a new, empty uploader


def loaded_text(key: str) -> str | None:
    """Return the loaded file's text for a control, once."""
    return st.session_state.get(_TEXTS, {}).pop(key, None)

"""What the sidebar says of sharing a page: its address is enough, or else a file, to save and to open."""

from __future__ import annotations

import streamlit as st

from ui.text.words import Words, load_words
from ui.widgets.component import component
from ui.widgets.page_file import VERSION, PageFile, PageFileError, read_page_file

_mount = component("page_file")
_OPENED = "page-file-opened"  # a file whose address the browser shall go to
_TURN = "page-file-turn"
_TEXTS = "page-file-texts"  # what its controls shall say once they are drawn


class Sharing:
    """The line on sharing, and below it what a text needs that is too long for the address."""

    def __init__(self, words: Words) -> None:
        """Made where it is to stand."""
        self.words, self.common = words, load_words("common")
        self._unlinked: dict[str, tuple[str, str]] = {}
        self._offers = False
        self._said, self._saved, self._files = st.empty(), st.empty(), st.container()
        self._said.caption(self.common("share"))
        _arrive()

    def say_unlinked(self, key: str, label: str, text: str) -> None:
        """The address cannot hold the text of this control: a file can."""
        self._unlinked[key] = (label, text)
        labels = [label for label, _ in self._unlinked.values()]
        self._said.caption(self.common("share-but", label=labels))
        page = {
            "attention-atlas": VERSION,
            "chapter": self.words.chapter,
            "texts": {key: text for key, (_, text) in self._unlinked.items()},
        }
        with self._saved:
            save = {"page": page, "name": f"{self.words.stem}.json", "label": self.common("file.save")}
            _mount(key=f"page-file-save-{len(self._unlinked)}", data={"save": save})

    def offer_to_open(self) -> None:
        """A file that was saved here, or elsewhere, brings its page back."""
        if self._offers:
            return
        self._offers = True
        with self._files:
            with st.popover(self.common("file.open"), type="tertiary", icon=":material/file_open:"):
                self._ask()
            opened: PageFile | None = st.session_state.get(_OPENED)
            if opened is not None:
                go = {"turn": st.session_state[_TURN], "address": opened.address}
                _mount(key="page-file-go", data={"go": go})

    def _ask(self) -> None:
        turn = st.session_state.setdefault(_TURN, 0)
        file = st.file_uploader(self.common("file.choose"), type="json", max_upload_size=1, key=f"page-file-{turn}")
        if file is None:
            return
        prefix = self.words.prefix
        known = {f"{prefix}-{name}" for name in self.words.front.get("controls", {})}
        try:
            st.session_state[_OPENED] = read_page_file(file.getvalue(), self.words.chapter, prefix, known)
        except PageFileError as error:
            st.session_state.pop(_OPENED, None)
            st.warning(self.common(f"file.{error.reason}", **error.values), icon=":material/file_open:")


def _arrive() -> None:
    """Once the browser shows the address of the file that was opened, its texts wait for their controls.

    The browser goes there by itself, as with Back, and so every control takes what the address says.
    """
    opened: PageFile | None = st.session_state.get(_OPENED)
    if opened is not None and opened.address == {name: st.query_params.get_all(name) for name in st.query_params}:
        del st.session_state[_OPENED]
        st.session_state[_TEXTS] = dict(opened.texts)
        st.session_state[_TURN] += 1  # a new place for files: an empty one


def opened_text(key: str) -> str | None:
    """What the file that was opened says in this control, asked for once."""
    return st.session_state.get(_TEXTS, {}).pop(key, None)

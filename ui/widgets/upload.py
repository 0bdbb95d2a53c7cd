"""Asking for a file: no address can hold it, so its name stands there, and it is asked for again by name."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from ui.text.markdown import escape
from ui.text.words import load_words

_PICTURES = ("png", "jpg", "jpeg", "webp", "gif")
_SOUNDS = ("wav", "flac", "ogg", "oga", "opus", "mp3")
_MOST_LETTERS = 80


def picture_file(label: str, key: str) -> bytes | None:
    """A picture as `_file` asks for it."""
    return _file(label, key, _PICTURES)


def sound_file(label: str, key: str) -> bytes | None:
    """A sound as `_file` asks for it."""
    return _file(label, key, _SOUNDS)


def text_file(label: str, key: str) -> bytes | None:
    """A text as `_file` asks for it."""
    return _file(label, key, ("txt",))


def _file(label: str, key: str, types: Sequence[str]) -> bytes | None:
    """What the reader has uploaded, or None; after a reload or behind a link, a note names the file that is missing."""
    param, had = f"{key}-file", f"{key}-had"
    file = st.file_uploader(label, type=list(types), key=key)
    if file is not None:
        st.session_state[had] = True
        name = file.name[:_MOST_LETTERS]
        if st.query_params.get(param) != name:
            st.query_params[param] = name
        return file.getvalue()
    if st.session_state.pop(had, False):  # taken away again by the reader
        st.query_params.pop(param, None)
    if missing := st.query_params.get(param):
        note = load_words("common")("asked-again", file=escape(missing[:_MOST_LETTERS]))
        st.info(note, icon=":material/upload_file:")
    return None

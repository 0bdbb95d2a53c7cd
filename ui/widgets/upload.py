"""File uploads. The URL cannot hold a file, so it holds its name, and a link asks for that file again."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from ui.text.markdown import escape
from ui.text.words import load_words
from viz_core.images.video import order_of_names

_PICTURES = ("png", "jpg", "jpeg", "webp", "gif")
_SOUNDS = ("wav", "flac", "ogg", "oga", "opus", "mp3")
_MAX_NAME = 80


def picture_file(label: str, key: str) -> bytes | None:
    """Draw an uploader for pictures; return the file's content, or None."""
    return _file(label, key, _PICTURES)


def video_files(label: str, key: str) -> list[bytes]:
    """Draw an uploader for an animation or several pictures; return the files' contents in the order of their names."""
    param = f"{key}-file"
    files = st.file_uploader(label, type=list(_PICTURES), key=key, accept_multiple_files=True)
    if files:
        _name_in_address(param, files[0].name)
    else:
        _ask_again(param, uploaded=st.session_state.pop(f"{key}-had", False))
    st.session_state[f"{key}-had"] = bool(files)
    return [file.getvalue() for file in sorted(files, key=lambda file: order_of_names(file.name))]


def sound_file(label: str, key: str) -> bytes | None:
    """Draw an uploader for sounds; return the file's content, or None."""
    return _file(label, key, _SOUNDS)


def _file(label: str, key: str, types: Sequence[str]) -> bytes | None:
    """Draw an uploader; after a reload, or if the page was opened by a link, a note names the missing file."""
    param, uploaded = f"{key}-file", f"{key}-had"
    file = st.file_uploader(label, type=list(types), key=key)
    if file is not None:
        st.session_state[uploaded] = True
        _name_in_address(param, file.name)
        return file.getvalue()
    _ask_again(param, uploaded=st.session_state.pop(uploaded, False))
    return None


def _name_in_address(param: str, name: str) -> None:
    if st.query_params.get(param) != name[:_MAX_NAME]:
        st.query_params[param] = name[:_MAX_NAME]


def _ask_again(param: str, uploaded: bool) -> None:
    """Ask for the file that the address names, unless the visitor has just removed it."""
    if uploaded:
        st.query_params.pop(param, None)
    if missing := st.query_params.get(param):
        note = load_words("common")("asked-again", file=escape(missing[:_MAX_NAME]))
        st.info(note, icon=":material/upload_file:")

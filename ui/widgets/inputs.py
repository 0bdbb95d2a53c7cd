"""What a reader brings: one sentence shared by all chapters, and files, whose names the URL holds."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from ui.text.markdown import escape
from ui.text.words import load_words
from ui.widgets.controls import Controls
from viz_core.images.open_image import order_of_names

_SHARED = "thread"
_MAX_CHARACTERS = 300  # a longer text is for the chapter it was typed in


def shared_text_input(controls: Controls, name: str, default: str, placeholder: str = "", *, height: int = 0) -> str:
    """Draw a text input that begins with the shared sentence, unless the URL holds another; return its text.

    Args:
        height: of a text area, in pixels; one line unless given.
    """
    key = controls.key(name)
    shared = st.session_state.get(_SHARED)
    if shared is not None and key not in st.session_state and key not in st.query_params:
        st.session_state[key] = st.query_params[key] = shared  # a copied link shows the same

    def typed() -> None:
        _share(st.session_state.get(key) or "")

    text = controls.text(name, default, placeholder=placeholder, on_change=typed, height=height)
    if shared is not None or text != default:
        _share(text)
    return text


def set_text(key: str, text: str) -> None:
    """Set the text of a field, for a button's `on_click`.

    It is shared before the page reruns: a visitor who follows a link at once ends that run before the field is drawn.
    """
    st.session_state[key] = text
    _share(text)


def _share(text: str) -> None:
    if text.strip() and len(text) <= _MAX_CHARACTERS:
        st.session_state[_SHARED] = text


_PICTURES = ("png", "jpg", "jpeg", "webp", "gif")
_SOUNDS = ("wav", "flac", "ogg", "oga", "opus", "mp3")
_MAX_NAME = 80


def picture_file(label: str, key: str) -> bytes | None:
    """Draw an uploader for pictures; return the file's content, or None."""
    return next((file.getvalue() for file in _files(label, key, _PICTURES)), None)


def sound_file(label: str, key: str) -> bytes | None:
    """Draw an uploader for sounds; return the file's content, or None."""
    return next((file.getvalue() for file in _files(label, key, _SOUNDS)), None)


def video_files(label: str, key: str) -> list[bytes]:
    """Draw an uploader for an animation or several pictures; return the files' contents in the order of their names."""
    files = _files(label, key, _PICTURES, several=True)
    return [file.getvalue() for file in sorted(files, key=lambda file: order_of_names(file.name))]


def _files(label: str, key: str, types: Sequence[str], several: bool = False) -> list[Any]:
    """Draw an uploader; after a reload, or if the page was opened by a link, a note names the missing file."""
    param, uploaded = f"{key}-file", f"{key}-had"
    found = st.file_uploader(label, type=list(types), key=key, accept_multiple_files=several)
    files = found if isinstance(found, list) else [found] if found else []
    if files:
        name = files[0].name[:_MAX_NAME]
        if st.query_params.get(param) != name:
            st.query_params[param] = name
    else:
        if st.session_state.get(uploaded):  # the visitor has just removed it
            st.query_params.pop(param, None)
        if missing := st.query_params.get(param):
            note = load_words("common")("asked-again", file=escape(missing[:_MAX_NAME]))
            st.info(note, icon=":material/upload_file:")
    st.session_state[uploaded] = bool(files)
    return files

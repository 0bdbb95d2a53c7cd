"""One sentence shared by all chapters: what is typed in one is the start of the next."""

from __future__ import annotations

import streamlit as st

from ui.widgets.controls import Controls

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

    if height:
        text = controls.text_area(name, default, height, on_change=typed)
    else:
        text = controls.text(name, default, placeholder=placeholder, on_change=typed)
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

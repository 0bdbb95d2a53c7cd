"""One sentence of the reader's goes with them: what is typed in one chapter is there in the next that takes one."""

from __future__ import annotations

import streamlit as st

from ui.widgets.controls import Controls

_KEPT = "thread"
_MOST = 300  # characters; a longer text is for the chapter it was typed in


def shared_text_input(controls: Controls, name: str, default: str, placeholder: str = "", *, height: int = 0) -> str:
    """Text to type; it begins with what was typed last in any chapter, unless the address says otherwise.

    Args:
        height: of a field of several lines, in pixels; one line unless given.
    """
    key = controls.key(name)
    kept = st.session_state.get(_KEPT)
    if kept is not None and key not in st.session_state and key not in st.query_params:
        st.session_state[key] = st.query_params[key] = kept  # a copied link shows the same

    def typed() -> None:
        _keep(st.session_state.get(key) or "")

    if height:
        text = controls.text_area(name, default, height, on_change=typed)
    else:
        text = controls.text(name, default, placeholder=placeholder, on_change=typed)
    if kept is not None or text != default:
        _keep(text)
    return text


def set_text(key: str, text: str) -> None:
    """Have a field hold this, for a button's `on_click`.

    It goes along before the page runs: who follows a link in the next moment ends that run before the field is drawn.
    """
    st.session_state[key] = text
    _keep(text)


def _keep(text: str) -> None:
    if text.strip() and len(text) <= _MOST:
        st.session_state[_KEPT] = text

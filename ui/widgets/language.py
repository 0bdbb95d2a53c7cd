"""The switch between languages: in the sidebar, in the address, and kept while a window is open."""

from __future__ import annotations

import streamlit as st

from ui.text.markdown import escape
from ui.text.words import LANGUAGE, Words, browser_language, current_language, languages, load_words

_SWITCH = "language-switch"


def language_select(common: Words) -> None:
    """A list of what the Atlas speaks; nothing where that is one language alone.

    What differs from the browser's own stands in the address, so that a copied link shows what its sender saw.
    """
    if len(languages()) == 1:
        return

    def told() -> None:
        st.session_state[LANGUAGE] = st.query_params[LANGUAGE] = st.session_state[_SWITCH]

    current = current_language()
    if (asked := st.query_params.get(LANGUAGE)) is not None and asked not in languages():
        st.caption(common("language-none", asked=escape(asked[:40]), shown=_name(current)))
    if current == browser_language():
        st.query_params.pop(LANGUAGE, None)
    elif asked != current:
        st.query_params[LANGUAGE] = current
    st.session_state[_SWITCH] = current
    st.selectbox(common("language"), languages(), format_func=_name, key=_SWITCH, on_change=told)


def _name(language: str) -> str:
    """What a language calls itself."""
    return load_words("common", language)("language-name")

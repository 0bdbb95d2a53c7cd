"""The language: chosen in the sidebar, held in the URL and in the session."""

from __future__ import annotations

import streamlit as st

from ui.text.markdown import escape
from ui.text.words import LANGUAGE, Words, browser_language, current_language, languages, load_words

_SELECT = "language-switch"


def language_select(common: Words) -> None:
    """Draw the list of languages, if there is more than one.

    A language other than the browser's is in the URL, so that a copied link shows what its sender saw.
    """
    if len(languages()) == 1:
        return

    def changed() -> None:
        st.session_state[LANGUAGE] = st.query_params[LANGUAGE] = st.session_state[_SELECT]

    current = current_language()
    requested = st.query_params.get(LANGUAGE)
    if requested is not None and requested not in languages():
        st.caption(common("language-none", asked=escape(requested[:40]), shown=_name(current)))
    if current == browser_language():
        st.query_params.pop(LANGUAGE, None)
    elif requested != current:
        st.query_params[LANGUAGE] = current
    st.session_state[_SELECT] = current
    st.selectbox(common("language"), languages(), format_func=_name, key=_SELECT, on_change=changed)


def _name(language: str) -> str:
    """Return the name of a language in that language."""
    return load_words("common", language)("language-name")

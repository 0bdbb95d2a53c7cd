"""The language: chosen in the sidebar, held in the URL, the session and the browser."""

from __future__ import annotations

import streamlit as st

from ui.text.markdown import escape
from ui.text.words import (
    LANGUAGE,
    Words,
    browser_language,
    current_language,
    languages,
    load_words,
    preferred_language,
)

_SELECT = "language-switch"
_CHOSEN = "language-chosen"


def language_select(common: Words) -> None:
    """Draw the list of languages, if there is more than one.

    A language other than the browser's is in the URL, so that a copied link shows what its sender saw. The browser
    keeps what was chosen here, and not what a link asked for.
    """
    if len(languages()) == 1:
        return

    def changed() -> None:
        chosen = st.session_state[_SELECT]
        st.session_state[LANGUAGE] = st.session_state[_CHOSEN] = st.query_params[LANGUAGE] = chosen

    current = current_language()
    requested = st.query_params.get(LANGUAGE)
    if requested is not None and requested not in languages():
        st.caption(common("language-none", asked=escape(requested[:40]), shown=_name(current)))
    if current == browser_language() == preferred_language():
        st.query_params.pop(LANGUAGE, None)
    elif requested != current:
        st.query_params[LANGUAGE] = current
    st.session_state[_SELECT] = current
    st.selectbox(common("language"), languages(), format_func=_name, key=_SELECT, on_change=changed)


def chosen_language() -> str:
    """Return the language that the reader chose in this window, for the browser to keep; "" if none."""
    return st.session_state.get(_CHOSEN, "")


def _name(language: str) -> str:
    """Return the name of a language in that language."""
    return load_words("common", language)("language-name")

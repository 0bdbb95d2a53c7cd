"""What a visitor sees where a page fails: a sentence, and no stack trace."""

from __future__ import annotations

import streamlit as st

from ui.compute.slots import metrics
from ui.streamlit_internals.sessions import recover_from_error
from ui.text.words import load_words


def show_error(error: Exception) -> bool:
    """Count the failure and say that it is ours; return True, so that Streamlit shows nothing of its own."""
    metrics().count_failure(type(error).__name__)
    recover_from_error()
    st.error(load_words("common")("failure"), icon=":material/error:")
    return True

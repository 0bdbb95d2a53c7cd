"""What a visitor sees where a page fails: a sentence, and no stack trace."""

from __future__ import annotations

import streamlit as st

from ui.compute import metrics
from ui.words import load_words


def tell(error: Exception) -> bool:
    """Count the failure and say that it is ours; True: Streamlit shows nothing of its own."""
    metrics().failed(type(error).__name__)
    st.error(load_words("common")("failure"), icon=":material/error:")
    return True

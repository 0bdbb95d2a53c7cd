"""What a visitor sees where a page fails: a sentence, and no stack trace."""

from __future__ import annotations

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from ui.compute import metrics
from ui.sessions import forget_controls
from ui.words import load_words


def tell(error: Exception) -> bool:
    """Count the failure and say that it is ours; True: Streamlit shows nothing of its own.

    A value that no page sends may have been the cause: none is kept, so that the next run is a run like any other.
    """
    metrics().failed(type(error).__name__)
    run = get_script_run_ctx()
    if run is not None:
        forget_controls(run.session_state._state)
    st.error(load_words("common")("failure"), icon=":material/error:")
    return True

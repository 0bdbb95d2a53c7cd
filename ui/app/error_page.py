"""What a visitor sees where a page fails: a sentence, and no stack trace."""

from __future__ import annotations

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.state.session_state import SCRIPT_RUN_WITHOUT_ERRORS_KEY

from ui.compute.slots import metrics
from ui.streamlit_internals.sessions import forget_controls
from ui.text.words import load_words


def tell(error: Exception) -> bool:
    """Count the failure and say that it is ours; True: Streamlit shows nothing of its own.

    A value that no page sends may have been the cause: none is kept, so that the next run is a run like any other.
    Where it fails too, what pages keep beside their controls goes as well, and the window begins anew.
    """
    metrics().count_failure(type(error).__name__)
    run = get_script_run_ctx()
    if run is not None:
        state = run.session_state._state
        forget_controls(state)
        if SCRIPT_RUN_WITHOUT_ERRORS_KEY in state and not state[SCRIPT_RUN_WITHOUT_ERRORS_KEY]:
            state.clear()
    st.error(load_words("common")("failure"), icon=":material/error:")
    return True

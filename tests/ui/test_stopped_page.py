"""Pages that stop early."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest


def _page() -> None:
    import streamlit as st
    from streamlit.runtime.scriptrunner import get_script_run_ctx

    from ui.streamlit_internals.script_run import clearing_fragments

    run = get_script_run_ctx()
    assert run is not None
    st.session_state.parts = len(run.fragment_storage._fragments)  # type: ignore[attr-defined]  # from the run before
    with clearing_fragments():
        if st.session_state.get("stops"):
            st.stop()
        st.fragment(lambda: st.write("a part"))()


def test_parts_that_a_stopped_page_lacks_cannot_be_asked_for() -> None:
    app = AppTest.from_function(_page).run()
    assert app.run().session_state.parts == 1
    app.session_state.stops = True
    app.run()
    assert app.run().session_state.parts == 0
    assert not app.exception

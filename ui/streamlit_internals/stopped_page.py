"""Pages that end early by `st.stop()`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from streamlit.runtime.scriptrunner import StopException, get_script_run_ctx

from ui.streamlit_internals.self_test import works


@contextmanager
def clearing_fragments() -> Iterator[None]:
    """Forget the fragments that a page lacks where it stops, as Streamlit does where a page runs to its end.

    One that is requested later would be drawn where nothing is, and break the page.
    """
    try:
        yield
    except StopException:
        run = get_script_run_ctx()
        if run is not None and works("stopped_page"):
            run.fragment_storage.clear(new_fragment_ids=run.shared.new_fragment_ids.snapshot())
        raise

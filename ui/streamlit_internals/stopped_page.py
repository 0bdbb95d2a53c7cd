"""A page that ends before its end: `st.stop()`, where there is nothing to show."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from streamlit.runtime.scriptrunner import StopException, get_script_run_ctx


@contextmanager
def may_stop() -> Iterator[None]:
    """What was on the page and is no more cannot be asked for: it would be drawn where nothing is, and break the page.

    Streamlit sees to that where a page runs to its end, and not where it stops.
    """
    try:
        yield
    except StopException:
        run = get_script_run_ctx()
        if run is not None:
            run.fragment_storage.clear(new_fragment_ids=run.shared.new_fragment_ids.snapshot())
        raise

"""A file that ships and is missing or damaged: a sentence in place of what needs it, and the rest of the page stays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from serving.logs import log, where
from ui.text.errors import explain
from viz_core.runtime.assets import AssetError


@contextmanager
def report_damaged_assets() -> Iterator[None]:
    """What is drawn in here, or the sentence that says which file it lacks."""
    try:
        yield
    except AssetError as error:
        log.error("a file that ships is damaged", error=where(error))
        st.error(explain(error), icon=":material/broken_image:")

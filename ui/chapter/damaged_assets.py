"""Missing or damaged files that ship: a message in place of the part that needs them; the rest of the page remains."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from serving.logs import log, where
from ui.text.errors import explain
from viz_core.runtime.assets import AssetError


@contextmanager
def report_damaged_assets() -> Iterator[None]:
    """Draw a message, and log it, if a file that the block needs is missing or damaged."""
    try:
        yield
    except AssetError as error:
        log.error("a file that ships is damaged", error=where(error))
        st.error(explain(error), icon=":material/broken_image:")

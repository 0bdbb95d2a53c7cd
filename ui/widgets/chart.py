"""Charts: plotly's figures, drawn by a component of ours when they come near the window.

Streamlit's own way brings all of plotly.js along, which a browser needs more than a second to read on every page with a
chart, and draws every chart at once, seen or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import plotly.graph_objects as go
import plotly.io
import streamlit as st

from serving.http.static_scripts import PLOTLY, script
from ui.text.numbers import separators
from ui.text.words import current_language, load_words
from ui.widgets.component import component
from viz_core.figures.chart import encode_chart

# The page's own look comes in the browser: no figure need carry plotly's, which takes longer to copy than most figures.
plotly.io.templates.default = None

_mount = component("chart", in_page=True)

Point = Mapping[str, Any]
"""A point that was clicked: its x, y and customdata."""


def draw_chart(
    key: str,
    figure: go.Figure,
    alt: str,
    file: str,
    *,
    bar: bool = True,
    on_click: Callable[[Point], None] | None = None,
) -> None:
    """Draw a figure; a new one under the same key changes it in place.

    Args:
        alt: what it says to who cannot see it.
        file: name of the picture that a reader may take along, without its ending.
        bar: whether buttons to enlarge it and to take it along show over it.
        on_click: is told the point that was clicked, before the page runs again.
    """

    def clicked() -> None:
        point = st.session_state[key].click
        if on_click and point:
            on_click(point)

    words, numbers = load_words("common").group("chart"), separators(current_language())
    about = {"alt": alt, "file": file, "bar": bar, "clickable": on_click is not None, "words": words}
    _mount(key=key, data=encode_chart(figure, numbers, plotly=script(PLOTLY).address, **about), on_click_change=clicked)

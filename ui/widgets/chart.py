"""Charts: plotly figures, drawn by a component of ours once they come near the window.

`st.plotly_chart` loads all of plotly.js, which takes a browser more than a second on every page with a chart, and draws
every chart at once, visible or not.
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
from ui.widgets.chart_payload import encode_chart
from ui.widgets.component import component

# The browser applies the page's theme; copying plotly's default template takes longer than drawing most figures.
plotly.io.templates.default = None

_mount = component("chart", in_page=True)

Point = Mapping[str, Any]
"""A clicked point: its x, y and customdata."""


def draw_chart(
    key: str,
    figure: go.Figure,
    alt: str,
    file: str,
    *,
    bar: bool = True,
    on_click: Callable[[Point], None] | None = None,
) -> None:
    """Draw a figure; a new figure under the same key replaces it in place.

    Args:
        alt: text alternative for screen readers.
        file: name of the picture file that a reader may save, without suffix.
        bar: whether buttons to enlarge and to save it are shown.
        on_click: receives the clicked point before the page reruns.
    """

    def clicked() -> None:
        point = st.session_state[key].click
        if on_click and point:
            on_click(point)

    words, numbers = load_words("common").group("chart"), separators(current_language())
    options = {"alt": alt, "file": file, "bar": bar, "clickable": on_click is not None, "words": words}
    _mount(
        key=key, data=encode_chart(figure, numbers, plotly=script(PLOTLY).address, **options), on_click_change=clicked
    )

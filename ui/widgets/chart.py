"""Charts: plotly figures, drawn by a component of ours once they come near the window.

`st.plotly_chart` loads all of plotly.js, which takes a browser more than a second on every page with a chart, and draws
every chart at once, visible or not.

The component in assets/components/chart gets arrays as raw bytes and the rest as JSON: plotly writes lists, float16 and
long whole numbers as text, and all else as base64, a third larger than it is. The header (see `framing`) holds

    about                   what else the component wants to know, by name; "parts": names of "x", "y" and "whole"
    data, layout, frames    as in plotly.js, where numbers of an array are {"dtype", "at", "shape"}: a kind of
                            JavaScript's typed arrays, the offset of the section they lie in, one or two lengths

The template stays behind: the page that draws the figure has its own.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go
import plotly.io
import streamlit as st

from serving.http.static_scripts import PLOTLY, script
from ui.text.numbers import ENGLISH, is_formatted_number, separators, with_separators
from ui.text.words import current_language, load_words
from ui.widgets.component import component
from viz_core.view.components import Sections, frame

DEFAULT_HEIGHT = 450
"""Pixels of a figure that asks for no height, as plotly has it."""

SQUARE = "square"
"""A layout's `meta`: one square with what stands around it, which in a narrow window is no higher than it can use."""


def named_parts(*, x: str = "", y: str = "", whole: str = "") -> dict[str, str]:
    """Return a layout's `meta` that names its axes or all of it; a trace is named by its own `meta`.

    A term in the text, a link to #part-NAME, lights what has its name; pointing at that lights the term. A part may
    have several names, separated by spaces.
    """
    return {"x": x, "y": y, "whole": whole}


# What plotly.js wants as a list of its own, for it reads no typed array there.
_LISTS = frozenset({"range"})
_TEXTS = frozenset({"text", "ticktext", "hovertext"})
_HOVER_NUMBER = re.compile(r"%\{(x|y|z|customdata):(\.\d+[ge])\}")
# JavaScript has no whole numbers of 64 bits as plain numbers, and no halves.
_AS = {"float16": "float32", "int64": "float64", "uint64": "float64"}
_KINDS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "float32", "float64")


def encode_chart(figure: go.Figure, separators: str = ENGLISH, **about: Any) -> bytes:
    """Encode a figure and what else the component needs.

    Args:
        separators: of its numbers, before the first decimal and between thousands.
    """
    header: dict[str, Any] = {
        "data": [_with_hover_texts(trace.to_plotly_json()) for trace in figure.data],
        "layout": figure.layout.to_plotly_json(),
        "frames": [each.to_plotly_json() for each in figure.frames],
    }
    header["layout"].pop("template", None)
    sections, header = Sections(), {name: _with_separators(part, separators) for name, part in header.items()}
    if separators != ENGLISH:
        header["layout"]["separators"] = separators
    meta = figure.layout.meta
    shape = {"square": True} if meta == SQUARE else {"parts": meta} if isinstance(meta, dict) else {}
    return frame({"about": {"height": height_of(figure), **shape, **about}, **_written(header, sections)}, sections)


def height_of(figure: go.Figure) -> int:
    """The height the figure asks for, in pixels."""
    return int(figure.layout.height or DEFAULT_HEIGHT)


def _with_hover_texts(trace: dict[str, Any]) -> dict[str, Any]:
    """Write what a hover template formats with "g" or "e" as texts, for plotly writes powers of ten as "1e-7"."""
    template = trace.get("hovertemplate")
    if not isinstance(template, str) or (found := _HOVER_NUMBER.search(template)) is None:
        return trace
    values = np.asarray(trace[found[1]], dtype=float)
    flat = ["" if math.isnan(each) else f"{each:{found[2]}}" for each in values.ravel().tolist()]
    texts = np.array(flat, dtype=object).reshape(values.shape)
    return {**trace, "hovertemplate": _HOVER_NUMBER.sub("%{hovertext}", template, count=1), "hovertext": texts}


def _with_separators(value: Any, separators: str, name: str = "") -> Any:
    """Rewrite a figure's formatted numbers with these separators and minus signs; other texts are unchanged."""
    if isinstance(value, dict):
        return {key: _with_separators(each, separators, key) for key, each in value.items()}
    if name in _TEXTS and isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple) and (name not in _TEXTS or all(map(_is_numeric, value))):
        return [_with_separators(each, separators, name) for each in value]
    return with_separators(value, separators) if name in _TEXTS and isinstance(value, str) else value


def _is_numeric(value: Any) -> bool:
    """Whether it is a number as text or none, or all in it are."""
    if isinstance(value, list | tuple):
        return all(map(_is_numeric, value))
    return not isinstance(value, str) or not value or is_formatted_number(value)


def _written(value: Any, sections: Sections, name: str = "") -> Any:
    """The value as JSON has it; NaN is null, as in plotly's own JSON."""
    if isinstance(value, dict):
        return {key: _written(each, sections, key) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        kind = _AS.get(value.dtype.name, value.dtype.name)
        if kind not in _KINDS or value.ndim not in (1, 2) or value.size == 0 or name in _LISTS:
            return _written(value.tolist(), sections)
        return {"dtype": kind, "at": sections.add(value.astype(kind, copy=False)), "shape": list(value.shape)}
    if isinstance(value, list | tuple):
        return [_written(each, sections) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


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
    data = encode_chart(figure, numbers, plotly=script(PLOTLY).address, **options)
    _mount(key=key, data=data, height=height_of(figure), on_click_change=clicked)

"""What a page says, read by its tests."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from viz_core.figures.framing import unframe


def follow_link(app: AppTest, chapter: str) -> AppTest:
    """Open a chapter as a browser does that follows a link to it; `switch_page` can, but after a first run only."""
    app._page_hash = calc_hash(chapter)
    return app


def texts(app: AppTest) -> str:
    """All it says, without the backslashes that keep Markdown from reading more into it."""
    elements = [*app.markdown, *app.caption, *app.warning, *app.error, *app.info]
    return "\n".join(element.value for element in elements).replace("\\", "")


def claims(app: AppTest) -> list[str]:
    """The claims, each with its badge: green where it holds."""
    return [m.value for m in app.markdown if m.value.startswith((":green[", ":orange["))]


def marks(app: AppTest) -> dict[str, tuple[bool, str]]:
    """What each claim says: whether it holds, and its residual."""
    found = (re.fullmatch(r":\w+\[:material/(check|close):\] (.*) `(.*)`", element.value) for element in app.markdown)
    return {mark[2]: (mark[1] == "check", mark[3]) for mark in found if mark}


def badges(app: AppTest) -> dict[str, bool]:
    """What each claim says, and whether it holds."""
    return {said: holds for said, (holds, _) in marks(app).items()}


def figures_alt(app: AppTest) -> str:
    """What its figures are for who cannot see them."""
    return "\n".join(chart.proto.alt for chart in app.get("plotly_chart"))


def with_data(app: AppTest) -> list[Any]:
    """The components that were handed data; each has another that only brings its code."""
    packed = b"\x1f\x8b"  # gzip: scripts
    sent = [component for component in app.get("bidi_component") if component.proto.bytes]
    return [component for component in sent if not component.proto.bytes.startswith(packed)]


def heatmap(app: AppTest, place: int = 0) -> tuple[dict[str, Any], np.ndarray]:
    """Header and pixels of a heatmap on the page."""
    data = with_data(app)[place].proto.bytes
    header, start = unframe(data)
    size = header["rows"] * header["columns"]
    pixels = np.frombuffer(data, np.uint8, size, start + header["pixels"])
    return header, pixels.reshape(header["rows"], header["columns"])

"""What a page says, read by its tests."""

from __future__ import annotations

import re

from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash


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

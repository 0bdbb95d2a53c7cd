"""Parts of a page that are computed and sent once they are nearly visible, and only then.

A marker in each part requests it; another, in the page, reports now and then which parts are visible. So when the page
runs again, for another sentence say, what is being read is drawn at once and the other parts wait again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from ui.chapter.damaged_assets import report_damaged_assets
from ui.widgets.component import component

_mount = component("lazy_parts", in_page=True)

_PAGE_KEY = "lazy-page"
_VISIBLE = "visible-parts"  # which parts were visible last, by page
_MOST = 64  # parts of a page that are visible at once


class LazyParts:
    """The parts of one page.

    Args:
        page: its name. Someone who returns to it gets at once what was visible when they left.
    """

    def __init__(self, page: str) -> None:
        self._page = page

    def watch(self) -> None:
        """Let the browser report which parts are visible; once a page."""
        if not _in_browser():
            return

        def report() -> None:
            self._store(_message(_PAGE_KEY).get("visible"))

        st.fragment(lambda: _mount(key=_PAGE_KEY, data={"name": "page"}, on_visible_change=report))()

    def add(self, name: str, draw: Callable[[], None], placeholder: Callable[[], None], height: int) -> None:
        """Add a part of the page, drawn once it is nearly visible; at once where there is no browser, as in a test.

        A link into it, printing, and a browser that cannot tell what is visible request it at once. It holds no
        widget: one that is not drawn is not in the URL. `draw` may be called again by itself, as `st.fragment` does.

        Args:
            name: unique among all parts of all chapters.
            draw: draws it.
            placeholder: draws what can be shown until then.
            height: what is reserved for it, in pixels; the next time, as much as it took.
        """
        if not _in_browser():
            draw()
            return
        key = f"lazy-{name}"

        def request() -> None:
            self._store(_message(key).get("request"))

        def run() -> None:
            place = st.container()
            visible = name in self._visible().get(self._page, ())
            with place, report_damaged_assets():
                (draw if visible else placeholder)()
            data = {"name": name, "pending": not visible, "height": height}
            _mount(key=key, data=data, on_request_change=request)

        with st.container(key=f"part-{name}"):
            st.fragment(run)()

    def _store(self, names: Any) -> None:
        """Store which parts are visible, of what the browser sent, which may be anything."""
        if isinstance(names, list):
            visible = frozenset(name for name in names[:_MOST] if isinstance(name, str))
            st.session_state[_VISIBLE] = self._visible() | {self._page: visible}

    def _visible(self) -> dict[str, frozenset[str]]:
        return st.session_state.get(_VISIBLE, {})


def _in_browser() -> bool:
    """Whether a browser shows the page: each sends its time zone."""
    return st.context.timezone is not None


def _message(key: str) -> Mapping[str, Any]:
    """The message of a marker; empty where the reader has left its chapter since."""
    return st.session_state.get(key) or {}

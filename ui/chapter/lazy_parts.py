"""Parts of a page that are computed and sent once they come near the window, and only then.

A mark in each part asks for it as soon as it is near; another, in the page, says now and then which parts are. So when
the page runs again, for another sentence say, what is being read is drawn at once and what is far waits again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from ui.chapter.damaged_assets import report_damaged_assets
from ui.widgets.component import component

_mount = component("near", in_page=True)

_MARK = "near-"  # the keys of marks begin so
_KEPT = "near"  # what was near last, by page
_MOST = 64  # parts of a page that are near at once


class NearParts:
    """The parts of one page.

    Args:
        page: its name. Who goes back to it gets at once what was near when they left.
    """

    def __init__(self, page: str) -> None:
        self._page = page

    def watch(self) -> None:
        """Let the browser say which parts are near; once a page."""
        if not _is_seen():
            return

        def told() -> None:
            self._heard("near-page", "near")

        st.fragment(lambda: _mount(key="near-page", data={"name": "page"}, on_near_change=told))()

    def add(self, name: str, draw: Callable[[], None], meanwhile: Callable[[], None], room: int) -> None:
        """A part of the page, drawn once it comes near the window; at once where nobody has a window, in a test say.

        A link into it, printing, and a browser that cannot tell what is near ask for it at once. It holds no control:
        one that is not drawn is not in the address. `draw` may be called again by itself, as `st.fragment` does.

        Args:
            name: unique among all parts of all chapters.
            draw: draws it.
            meanwhile: draws what can be said until then.
            room: what is kept free for it, in pixels; the next time, as much as it took.
        """
        if not _is_seen():
            draw()
            return
        key = f"{_MARK}{name}"

        def asked() -> None:
            self._heard(key, "come")

        def run() -> None:
            place = st.container()
            near = name in self._kept().get(self._page, ())
            with place, report_damaged_assets():
                (draw if near else meanwhile)()
            _mount(key=key, data={"name": name, "waits": not near, "room": room}, on_come_change=asked)

        with st.container(key=f"part-{name}"):
            st.fragment(run)()

    def _heard(self, key: str, event: str) -> None:
        """What a mark said."""
        self._keep(_said(key).get(event))
        if _somebody_else_spoke():
            st.rerun()  # the whole page: one part alone would leave the other unheard

    def _keep(self, names: Any) -> None:
        """What is near now, of what the browser said, which may be anything."""
        if isinstance(names, list):
            near = frozenset(name for name in names[:_MOST] if isinstance(name, str))
            st.session_state[_KEPT] = self._kept() | {self._page: near}

    def _kept(self) -> dict[str, frozenset[str]]:
        return st.session_state.get(_KEPT, {})


def _is_seen() -> bool:
    """Whether a browser shows the page: each says where in the world it is."""
    return st.context.timezone is not None


def _somebody_else_spoke() -> bool:
    """Whether the message that asks for a part also brings what a control says.

    Of what is said within a few milliseconds Streamlit's page makes one message, and has it answered by a part that
    spoke: what a reader types or clicks while a part asks for itself would be known, and nowhere shown.
    """
    run = get_script_run_ctx()
    if run is None:
        return False
    state = run.session_state._state  # which widget spoke is told nowhere else
    return any(state._widget_changed(each) for each in list(state._new_widget_state) if f"-{_MARK}" not in each)


def _said(key: str) -> Mapping[str, Any]:
    """What the browser said by this mark; nothing where the reader has left its chapter meanwhile."""
    return st.session_state.get(key) or {}

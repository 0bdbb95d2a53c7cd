"""Parts of a page that are computed and sent once they come near the window, and only then.

A mark in each part asks for it as soon as it is near; another, in the page, says now and then which parts are. So when
the page runs again, for another sentence say, what is being read is drawn at once and what is far waits again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from ui.component import component

_mount = component("near", in_page=True)

_KEPT = "near"
_MOST = 64  # parts of a page that are near at once


def watch_page() -> None:
    """Let the browser say which parts are near; once a page."""
    if not _is_seen():
        return

    def told() -> None:
        _keep(st.session_state["near-page"].near)

    st.fragment(lambda: _mount(key="near-page", data={"name": "page"}, on_near_change=told))()


def near_part(name: str, draw: Callable[[], None], meanwhile: Callable[[], None], room: int) -> None:
    """A part of the page, drawn once it comes near the window; at once where nobody has a window, in a test say.

    A link into it, printing, and a browser that cannot tell what is near ask for it at once. It holds no control: one
    that is not drawn is not in the address. `draw` may be called again by itself, as `st.fragment` does.

    Args:
        name: unique among all parts of all chapters.
        draw: draws it.
        meanwhile: draws what can be said until then.
        room: what is kept free for it, in pixels; the next time, as much as it took.
    """
    if not _is_seen():
        draw()
        return
    key = f"near-{name}"

    def asked() -> None:
        _keep(st.session_state[key].come)

    def run() -> None:
        place = st.container()
        near = name in st.session_state.get(_KEPT, ())
        with place:
            (draw if near else meanwhile)()
        _mount(key=key, data={"name": name, "waits": not near, "room": room}, on_come_change=asked)

    with st.container(key=f"part-{name}"):
        st.fragment(run)()


def _is_seen() -> bool:
    """Whether a browser shows the page: each says where in the world it is."""
    return st.context.timezone is not None


def _keep(names: Any) -> None:
    """What is near now, of what the browser said, which may be anything."""
    if isinstance(names, list):
        st.session_state[_KEPT] = frozenset(name for name in names[:_MOST] if isinstance(name, str))

"""Parts that wait until they are near: what a browser is sent, and what those get who have none."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.reading import components

A_WINDOW = {"timezone": "Europe/Paris"}


def page() -> None:
    """Two parts, each with words for the time until it comes."""
    import streamlit as st

    from ui.near import near_part, watch_page

    watch_page()
    for name in ("a", "b"):
        near_part(name, lambda name=name: st.write(f"{name} is here"), lambda name=name: st.write(f"{name} waits"), 300)


def opened(near: Any = None, **context: str) -> AppTest:
    app = AppTest.from_function(page)
    app.context = context
    if near is not None:
        app.session_state["near"] = near
    return app.run()


def said(app: AppTest) -> list[str]:
    assert not app.exception
    return [element.value for element in app.markdown]


def test_where_nobody_has_a_window_all_is_drawn_at_once() -> None:
    app = opened()
    assert said(app) == ["a is here", "b is here"]
    assert components(app, "near") == []


def test_a_browser_is_sent_what_is_near_and_no_more() -> None:
    app = opened(**A_WINDOW)
    assert said(app) == ["a waits", "b waits"]
    app = opened(frozenset({"b"}), **A_WINDOW)
    assert said(app) == ["a waits", "b is here"]
    marks = [mark.json for mark in components(app, "near")]
    assert ['"waits": true' in mark for mark in marks[1:]] == [True, False]


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        (["a", "b"], {"a", "b"}),
        ([], set()),
        (["a", 7, None, ["b"]], {"a"}),
        ([str(i) for i in range(10_000)], {str(i) for i in range(64)}),
        ("ab", {"before"}),
        ({"a": 1}, {"before"}),
        (None, {"before"}),
    ],
)
def test_whatever_a_browser_says_is_near_is_kept_in_bounds(told: Any, kept: set[str]) -> None:
    def telling(told: object) -> None:
        import streamlit as st

        from ui.near import _keep

        st.session_state["near"] = frozenset({"before"})
        _keep(told)

    app = AppTest.from_function(telling, args=(told,)).run()
    assert not app.exception
    assert app.session_state["near"] == kept

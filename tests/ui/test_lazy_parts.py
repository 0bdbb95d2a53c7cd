"""Parts that wait until they are visible: what a browser is sent, and what is drawn without one."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.reading import components
from ui.chapter.parts import _message

A_BROWSER = {"timezone": "Europe/Paris"}


def page() -> None:
    """Four parts, each with words for the time until it comes."""
    import streamlit as st

    from ui.chapter.parts import LazyParts

    parts = LazyParts("page")
    parts.watch()
    for name in "abcd":
        parts.add(name, lambda name=name: st.write(f"{name} is here"), lambda name=name: st.write(f"{name} waits"), 300)


def opened(visible: Any = None, **context: str) -> AppTest:
    app = AppTest.from_function(page)
    app.context = context
    if visible is not None:
        app.session_state["visible-parts"] = visible
    return app.run()


def texts(app: AppTest) -> list[str]:
    assert not app.exception
    return [element.value for element in app.markdown]


def test_where_nobody_has_a_window_all_is_drawn_at_once() -> None:
    app = opened()
    assert texts(app) == ["a is here", "b is here", "c is here", "d is here"]
    assert components(app, "lazy_parts") == []


def waiting(app: AppTest) -> list[bool]:
    return ['"pending": true' in mark.json for mark in components(app, "lazy_parts")[1:]]


def test_a_browser_is_sent_what_is_near_and_no_more() -> None:
    assert texts(opened(**A_BROWSER)) == ["a waits", "b waits", "c waits", "d waits"]
    app = opened({"page": frozenset("bd"), "another page": frozenset("a")}, **A_BROWSER)
    assert texts(app) == ["a waits", "b is here", "c waits", "d is here"]
    assert waiting(app) == [True, False, True, False]


@pytest.mark.parametrize(
    ("sent", "stored"),
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
def test_whatever_a_browser_says_is_near_is_kept_in_bounds(sent: Any, stored: set[str]) -> None:
    def report(sent: object) -> None:
        import streamlit as st

        from ui.chapter.parts import LazyParts

        st.session_state["visible-parts"] = {"page": frozenset({"before"}), "other": frozenset({"x"})}
        LazyParts("page")._store(sent)

    app = AppTest.from_function(report, args=(sent,)).run()
    assert not app.exception
    assert app.session_state["visible-parts"] == {"page": stored, "other": {"x"}}


def test_who_has_left_meanwhile_says_nothing() -> None:
    """A browser may still send what a mark of the last chapter said."""
    assert _message("lazy-of-another-chapter") == {}

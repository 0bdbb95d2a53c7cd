"""Parts that wait until they are near: what a browser is sent, and what those get who have none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.runtime.state import SessionState
from streamlit.testing.v1 import AppTest

from tests.pages.reading import components
from ui.chapter import lazy_parts as near
from ui.chapter.lazy_parts import _said

A_WINDOW = {"timezone": "Europe/Paris"}


def page() -> None:
    """Four parts, each with words for the time until it comes."""
    import streamlit as st

    from ui.chapter.lazy_parts import NearParts

    parts = NearParts("page")
    parts.watch()
    for name in "abcd":
        parts.add(name, lambda name=name: st.write(f"{name} is here"), lambda name=name: st.write(f"{name} waits"), 300)


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
    assert said(app) == ["a is here", "b is here", "c is here", "d is here"]
    assert components(app, "near") == []


def waiting(app: AppTest) -> list[bool]:
    return ['"waits": true' in mark.json for mark in components(app, "near")[1:]]


def test_a_browser_is_sent_what_is_near_and_no_more() -> None:
    assert said(opened(**A_WINDOW)) == ["a waits", "b waits", "c waits", "d waits"]
    app = opened({"page": frozenset("bd"), "another page": frozenset("a")}, **A_WINDOW)
    assert said(app) == ["a waits", "b is here", "c waits", "d is here"]
    assert waiting(app) == [True, False, True, False]


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

        from ui.chapter.lazy_parts import NearParts

        st.session_state["near"] = {"page": frozenset({"before"}), "other": frozenset({"x"})}
        NearParts("page")._keep(told)

    app = AppTest.from_function(telling, args=(told,)).run()
    assert not app.exception
    assert app.session_state["near"] == {"page": kept, "other": {"x"}}


def test_who_has_left_meanwhile_says_nothing() -> None:
    """A browser may still send what a mark of the last chapter said."""
    assert _said("near-of-another-chapter") == {}


@pytest.mark.parametrize(
    ("spoke", "all_runs"),
    [
        (["near-a"], False),
        (["near-a", "near-page"], False),
        (["near-a", "t-text"], True),
        (["near-page", "t-text"], True),
        (["near-a", "t-click"], True),  # of which nothing was said before: clicks come and go
    ],
)
def test_what_a_control_says_in_the_same_message_is_not_left_unheard(
    monkeypatch: pytest.MonkeyPatch, spoke: list[str], all_runs: bool
) -> None:
    state = talking(monkeypatch)
    for key in spoke:
        state._new_widget_state.set_from_value(f"$$ID-0123-{key}", "now")
    assert near._somebody_else_spoke() is all_runs


def talking(monkeypatch: pytest.MonkeyPatch) -> SessionState:
    """Two marks and two controls, of which a browser says what it said before."""
    state = SessionState()
    for key in ("near-a", "near-page", "t-text", "t-quiet"):
        state._old_state[f"$$ID-0123-{key}"] = "before"
        state._new_widget_state.set_from_value(f"$$ID-0123-{key}", "before")
    run = SimpleNamespace(session_state=SimpleNamespace(_state=state))
    monkeypatch.setattr(near, "get_script_run_ctx", lambda: run)
    return state

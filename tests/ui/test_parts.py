"""Lazy parts of a page, and claims with their badges."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.reading import badges, components
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


def row(kind: str, measured: float, deferred: bool) -> None:
    """Draw one claim, and a caption each time it is measured."""
    import streamlit as st

    from ui.chapter.claims import Claim
    from ui.text.words import load_words

    def measure() -> float:
        st.caption("measured")
        return measured

    claim = Claim("claim-a", "The sum is 1", kind, measure if deferred else measured, 1e-5)
    assert claim.is_deferred is deferred
    (claim.draw_pending if st.session_state.get("pending") else claim.draw)(load_words("common"))


@pytest.mark.parametrize(
    ("kind", "measured", "holds"),
    [
        ("off-by", 0.0, True),
        ("off-by", 1e-5, True),
        ("off-by", 2e-5, False),
        ("off-by", float("nan"), False),
        ("at-most", 1e-5, True),
        ("at-most", 0.5, False),
        ("at-least", 1e-5, True),
        ("at-least", 0.0, False),
        ("at-least", float("nan"), False),
    ],
)
@pytest.mark.parametrize("deferred", [False, True])
def test_a_badge_holds_on_the_right_side_of_its_limit(kind: str, measured: float, holds: bool, deferred: bool) -> None:
    app = AppTest.from_function(row, args=(kind, measured, deferred)).run()
    assert badges(app) == {"The sum is 1": holds}


def test_a_pending_claim_is_drawn_and_not_measured() -> None:
    app = AppTest.from_function(row, args=("off-by", 0.0, True))
    app.session_state["pending"] = True
    app.run()
    assert badges(app) == {}
    assert "The sum is 1" in app.markdown[0].value
    assert "…" in app.markdown[0].value
    assert not app.caption

"""Badges: a number on the wrong side of its limit fails; what is not measured yet says neither."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.reading import badges


def row(kind: str, measured: float, waits: bool) -> None:
    """A row with one claim, that says how often it was measured."""
    import streamlit as st

    from ui.chapter.claims import Claim
    from ui.text.words import load_words

    def measure() -> float:
        st.caption("measured")
        return measured

    claim = Claim("claim-a", "The sum is 1", kind, measure if waits else measured, 1e-5)
    assert claim.waits is waits
    (claim.say if st.session_state.get("far") else claim.draw)(load_words("common"))


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
@pytest.mark.parametrize("waits", [False, True])
def test_a_badge_holds_on_the_right_side_of_its_limit(kind: str, measured: float, holds: bool, waits: bool) -> None:
    app = AppTest.from_function(row, args=(kind, measured, waits)).run()
    assert badges(app) == {"The sum is 1": holds}


def test_what_is_far_is_said_and_not_measured() -> None:
    app = AppTest.from_function(row, args=("off-by", 0.0, True))
    app.session_state["far"] = True
    app.run()
    assert badges(app) == {}
    assert "The sum is 1" in app.markdown[0].value
    assert "…" in app.markdown[0].value
    assert not app.caption

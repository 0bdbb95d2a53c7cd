"""Badges: a number on the wrong side of its limit fails; a pending claim neither holds nor fails."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.reading import badges


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
